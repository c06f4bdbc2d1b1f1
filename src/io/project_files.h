// The files that come with the project, such as configs/tiny.toml, wherever a program is called from.
#ifndef LATTICE_IO_PROJECT_FILES_H_
#define LATTICE_IO_PROJECT_FILES_H_

#include <filesystem>

namespace lattice::io {

// `path` (relative) under the current directory, else in the tree that the program was built in, else under
// share/lattice of where it is installed. Empty when it is in none of them.
std::filesystem::path FindProjectFile(const std::filesystem::path& path);

}  // namespace lattice::io

#endif  // LATTICE_IO_PROJECT_FILES_H_
