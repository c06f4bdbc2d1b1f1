// Text files as a list of documents, mapped into memory instead of loaded.
#ifndef LATTICE_DATA_CORPUS_H_
#define LATTICE_DATA_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/file.h"
#include "text/documents.h"

namespace lattice::data {

// The documents are views into mapped files, valid while the object (or the one it was moved to) lives.
class Corpus {
 public:
  // A text file, or a directory whose .txt files are read in order of their names. Each file ends a document;
  // with `split_documents`, so does a line <|endoftext|>. Throws Error when there is no text, and for
  // compressed files.
  Corpus(const std::filesystem::path& path, bool split_documents);

  const std::vector<text::Document>& documents() const { return documents_; }
  int64_t bytes() const { return bytes_; }
  // Whether a document is ended by a marker in the text, so that the tokenizer needs an end-of-text id.
  bool has_markers() const { return has_markers_; }
  // A hash of the content and of the document boundaries.
  uint64_t hash() const { return hash_; }

 private:
  void Add(const std::filesystem::path& path, bool split_documents, bool ends_document);

  std::vector<io::MappedFile> files_;
  std::vector<text::Document> documents_;
  int64_t bytes_ = 0;
  bool has_markers_ = false;
  uint64_t hash_ = 0;
};

struct Split {
  std::vector<text::Document> train;
  std::vector<text::Document> valid;
};

// Holds out about `fraction` of the bytes at the end. The cut is at the end of a document if one is near,
// else at the end of a line, else at the end of a character. Both parts together are the whole text.
Split HoldOut(const std::vector<text::Document>& documents, double fraction);

}  // namespace lattice::data

#endif  // LATTICE_DATA_CORPUS_H_
