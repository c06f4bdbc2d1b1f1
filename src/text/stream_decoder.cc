#include "text/stream_decoder.h"

#include <utility>

#include "text/utf8.h"

namespace lattice::text {

std::string StreamDecoder::Push(int32_t id) {
  tokenizer_.DecodeTo(id, at_start_, pending_);
  if (pending_.empty()) return "";
  at_start_ = false;
  const size_t certain = pending_.size() - IncompleteTail(pending_);
  const std::string text = ReplaceInvalidUtf8(std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  return text;
}

std::string StreamDecoder::Finish() {
  at_start_ = true;
  return ReplaceInvalidUtf8(std::exchange(pending_, {}));
}

}  // namespace lattice::text
