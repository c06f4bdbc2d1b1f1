// Incremental decoding of tokens for terminals and HTTP: the output is always whole UTF-8 characters.
#ifndef LATTICE_TEXT_STREAM_DECODER_H_
#define LATTICE_TEXT_STREAM_DECODER_H_

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace lattice::text {

// Bytes that cannot be part of a character become U+FFFD; bytes that may be the start of one are held back.
// Used by one thread at a time. The tokenizer must outlive the decoder.
class StreamDecoder {
 public:
  // `at_start` false: the tokens continue a text, so that a leading space is kept.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool at_start = true)
      : tokenizer_(tokenizer), at_start_(at_start) {}

  // Adds a token and returns the text that is final after it; may be empty. Throws Error for an unknown id.
  std::string Push(int32_t id);

  // Whether bytes are held back that may be the start of a character.
  bool waiting() const { return !pending_.empty(); }

  // Returns the text that was held back, and resets the decoder.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  bool at_start_;
  std::string pending_;
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_STREAM_DECODER_H_
