// Counts the bytes of text that tokens stand for, to convert nats per token into bits per byte.
#ifndef LATTICE_DATA_TOKEN_BYTES_H_
#define LATTICE_DATA_TOKEN_BYTES_H_

#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::data {

// For a stream of documents that are separated by the end-of-text id.
//
// SentencePiece puts a space in front of every text it encodes (the dummy prefix), so the first token of a
// document has one byte that the document does not have. The count of a token therefore depends on the token
// before it. Special ids have no text.
class TokenBytes {
 public:
  explicit TokenBytes(const text::Tokenizer& tokenizer);

  // The bytes of `token` when it follows `previous` in the stream.
  int64_t After(int64_t previous, int64_t token) const {
    return (previous == end_of_text_ ? first_ : inside_)[static_cast<size_t>(token)];
  }

 private:
  int64_t end_of_text_;
  std::vector<int64_t> first_;   // by token id, as the first token of a document
  std::vector<int64_t> inside_;  // by token id, anywhere else
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_TOKEN_BYTES_H_
