// The text of sampled tokens as far as it may be sent: whole characters, and nothing of a stop text.
#ifndef LATTICE_SERVER_ENGINE_SHOWN_TEXT_H_
#define LATTICE_SERVER_ENGINE_SHOWN_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "text/stream_decoder.h"

namespace lattice::server {

// Text that may be the beginning of a stop text is held back until it is certain that it is not. Used by one
// thread at a time; the tokenizer must outlive the object.
class ShownText {
 public:
  // `at_start` as for text::StreamDecoder. Stop texts must not be empty.
  ShownText(const text::Tokenizer& tokenizer, bool at_start, std::vector<std::string> stops)
      : decoder_(tokenizer, at_start), stops_(std::move(stops)) {}

  // Adds a token. True when it completes a stop text: then Take returns the text before it, and no tokens may
  // follow.
  bool Push(int32_t id);
  // Ends the text. True when the bytes that were held back complete a stop text.
  bool Finish();

  // The text that became certain since the last call.
  std::string Take();
  // How many tokens have all their text certain; after a stop, how many end before it.
  int64_t CertainTokens() const { return certain_tokens_; }

 private:
  bool Add(const std::string& text, bool last);

  text::StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string held_, ready_;
  int64_t certain_bytes_ = 0;
  std::vector<int64_t> ends_;  // by token, in bytes of all text so far
  int64_t certain_tokens_ = 0;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SHOWN_TEXT_H_
