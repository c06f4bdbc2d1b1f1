// Bytes of text behind tokens: what turns nats per token into bits per byte.
#ifndef LATTICE_DATA_TOKEN_BYTES_H_
#define LATTICE_DATA_TOKEN_BYTES_H_

#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::data {

// Counts the tokens of a stream of documents in which the end-of-text id stands between two documents.
//
// SentencePiece puts a space in front of every text it encodes (the dummy prefix), so the first token of a
// document has one byte that the document does not have. A token therefore counts by what stands before it.
// Special ids stand for no text.
class TokenBytes {
 public:
  explicit TokenBytes(const text::Tokenizer& tokenizer);

  // Bytes of `token` that follows `previous` in the stream.
  int64_t After(int64_t previous, int64_t token) const {
    return (previous == end_of_text_ ? first_ : inside_)[static_cast<size_t>(token)];
  }

 private:
  int64_t end_of_text_;
  std::vector<int64_t> first_;   // by token id, where a document begins with it
  std::vector<int64_t> inside_;  // anywhere else
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_TOKEN_BYTES_H_
