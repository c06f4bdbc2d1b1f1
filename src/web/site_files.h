// The files of a model as they arrive in a page: piece by piece, checked against what the site says about them.
#ifndef LATTICE_WEB_SITE_FILES_H_
#define LATTICE_WEB_SITE_FILES_H_

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "io/hash.h"
#include "server/engine/served_model.h"

namespace lattice::web {

class SiteFiles {
 public:
  // The files are kept in `directory`, which is made; in a page, files are memory.
  explicit SiteFiles(std::filesystem::path directory);

  // Adds the next bytes of a file.
  void Append(const std::string& name, std::span<const std::byte> piece);
  // Throws Error unless the file is complete and its SHA-256, 64 hexadecimal digits, is this one.
  void Check(const std::string& name, const std::string& sha256);
  // Opens the model that the files are and removes them. `name` is what the page calls it.
  server::ServedModel Open(const std::string& name);

 private:
  std::filesystem::path directory_;
  std::map<std::string, io::Sha256> hashes_;
};

}  // namespace lattice::web

#endif  // LATTICE_WEB_SITE_FILES_H_
