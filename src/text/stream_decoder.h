// Tokens to text while they come, for terminals and HTTP: what is shown is always whole UTF-8 characters.
#ifndef LATTICE_TEXT_STREAM_DECODER_H_
#define LATTICE_TEXT_STREAM_DECODER_H_

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace lattice::text {

// Bytes that can never be part of a character come out as U+FFFD; bytes that may be the start of one wait.
// One thread at a time. The tokenizer must outlive the decoder.
class StreamDecoder {
 public:
  // `at_start` false: the tokens continue a text, so that a leading space is kept.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool at_start = true)
      : tokenizer_(tokenizer), at_start_(at_start) {}

  // The text that is certain after this token; may be empty. Throws Error for an id that does not exist.
  std::string Push(int32_t id);

  // Bytes have come that may be the start of a character.
  bool waiting() const { return !pending_.empty(); }

  // What was still waiting, and back to the start.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  bool at_start_;
  std::string pending_;
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_STREAM_DECODER_H_
