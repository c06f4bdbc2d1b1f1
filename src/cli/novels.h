// Finds files that come with the project.
#ifndef LATTICE_CLI_NOVELS_H_
#define LATTICE_CLI_NOVELS_H_

#include <filesystem>

namespace lattice::cli {

// Finds `path`, such as configs/reproduce, under the current directory or in the tree that the program was
// built in. Throws Error when it is in neither.
std::filesystem::path FindInTree(const std::filesystem::path& path);

// FindInTree for data/austen.
std::filesystem::path FindNovels();

}  // namespace lattice::cli

#endif  // LATTICE_CLI_NOVELS_H_
