// The text of an experiment, and its fingerprint.
#ifndef LATTICE_REPRODUCE_CORPUS_H_
#define LATTICE_REPRODUCE_CORPUS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace lattice::reproduce {

struct Corpus {
  std::filesystem::path train, valid;
  std::string fingerprint;  // of the names and contents of all files
  // The same paths without this machine's directories, for commands that others can repeat:
  // DATA/books_train.txt
  std::string shown_train, shown_valid;
};

// The file itself, or all files of a directory, sorted.
std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& path);

// Finds <name>_train.txt and <name>_valid.txt in `directory`, or else train and valid (a .txt file, or a
// directory of them), which serve for every name. Throws Error that says what was tried.
Corpus FindCorpus(const std::filesystem::path& directory, const std::string& name);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_CORPUS_H_
