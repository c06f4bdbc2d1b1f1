// Finds files that come with the project, such as configs/tiny.toml, from any working directory.
#ifndef LATTICE_IO_PROJECT_FILES_H_
#define LATTICE_IO_PROJECT_FILES_H_

#include <filesystem>

namespace lattice::io {

// The file at the relative `path` under the current directory, else in the source tree that the program was
// built in, else under share/lattice of the installation. Empty when it is in none of them.
std::filesystem::path FindProjectFile(const std::filesystem::path& path);

}  // namespace lattice::io

#endif  // LATTICE_IO_PROJECT_FILES_H_
