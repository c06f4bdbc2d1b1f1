// Files of the source tree that are part of the program: the page, and the description of the interface.
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

// Null when there is none of this name.
const EmbeddedFile* FindEmbedded(std::string_view name);

// By the name's ending: "text/html; charset=utf-8", ...
std::string_view ContentType(std::string_view name);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_EMBEDDED_FILES_H_
