// The key that seals the sessions of a directory, kept beside them.
#ifndef LATTICE_SERVER_STORE_DIRECTORY_KEY_H_
#define LATTICE_SERVER_STORE_DIRECTORY_KEY_H_

#include <filesystem>
#include <string>

namespace lattice::server::store {

// The content of the directory's file "key", which only its user can read. When there is none, it becomes
// `random`. Throws Error.
std::string KeyOfDirectory(const std::filesystem::path& directory, const std::string& random);

}  // namespace lattice::server::store

#endif  // LATTICE_SERVER_STORE_DIRECTORY_KEY_H_
