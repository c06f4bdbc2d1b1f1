// Text files as a list of documents, without loading them.
#ifndef LATTICE_DATA_CORPUS_H_
#define LATTICE_DATA_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/file.h"
#include "text/documents.h"

namespace lattice::data {

// Views into mapped files, valid while the object (or what it was moved into) lives.
class Corpus {
 public:
  // A text file, or a directory whose .txt files are taken in order of their names, each ending a document.
  // With `split_documents` a line <|endoftext|> ends one too. Throws Error when there is no text, and for
  // compressed files.
  Corpus(const std::filesystem::path& path, bool split_documents);

  const std::vector<text::Document>& documents() const { return documents_; }
  int64_t bytes() const { return bytes_; }
  // Some document ended by a marker in the text, so the tokenizer needs an end-of-text id.
  bool has_markers() const { return has_markers_; }
  // Changes with the content and with where documents end.
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

// Holds out about `fraction` of the bytes from the end: at the end of a document where one is near, else at
// the end of a line, else of a character. Both parts together are the whole text.
Split HoldOut(const std::vector<text::Document>& documents, double fraction);

}  // namespace lattice::data

#endif  // LATTICE_DATA_CORPUS_H_
