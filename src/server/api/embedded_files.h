// Files of the source tree that are compiled into the program: the page, and openapi.json.
#ifndef LATTICE_SERVER_API_EMBEDDED_FILES_H_
#define LATTICE_SERVER_API_EMBEDDED_FILES_H_

#include <span>
#include <string_view>

namespace lattice::server {

struct EmbeddedFile {
  std::string_view name;  // "index.html"
  std::string_view content;
};

// Written by embed_files.cmake.
std::span<const EmbeddedFile> EmbeddedFiles();

// Null when there is no file of this name.
const EmbeddedFile* FindEmbedded(std::string_view name);

// The media type by file extension: "text/html; charset=utf-8", ...
std::string_view ContentType(std::string_view name);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_EMBEDDED_FILES_H_
