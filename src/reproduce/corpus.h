// The text an experiment reads, and what identifies it.
#ifndef LATTICE_REPRODUCE_CORPUS_H_
#define LATTICE_REPRODUCE_CORPUS_H_

#include <filesystem>
#include <string>

namespace lattice::reproduce {

struct Corpus {
  std::filesystem::path train, valid;
  std::string fingerprint;  // of the names and contents of all files
  // The same paths without the machine's own directories, for commands that others repeat:
  // DATA/books_train.txt
  std::string shown_train, shown_valid;
};

// In `directory`: <name>_train.txt and <name>_valid.txt, or else train and valid (a file .txt, or a directory
// of them) for every name. Throws Error that says what was looked for.
Corpus FindCorpus(const std::filesystem::path& directory, const std::string& name);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_CORPUS_H_
