// Holds back text that may turn out to be the beginning of a stop text.
#include "server/engine/shown_text.h"

#include <algorithm>
#include <utility>

namespace lattice::server {
namespace {

// The length of the longest end of `text` that is a beginning of `stop`.
size_t Overlap(const std::string& text, const std::string& stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.compare(text.size() - length, length, stop, 0, length) == 0) return length;
  }
  return 0;
}

}  // namespace

bool ShownText::Push(int32_t id) {
  const std::string text = decoder_.Push(id);
  // A token that ends within a character ends one byte after the text that is known so far.
  const size_t more = held_.size() + text.size() + (decoder_.waiting() ? 1 : 0);
  ends_.push_back(certain_bytes_ + static_cast<int64_t>(more));
  return Add(text, false);
}

bool ShownText::Finish() { return Add(decoder_.Finish(), true); }

bool ShownText::Add(const std::string& text, bool last) {
  held_ += text;
  size_t found = std::string::npos, waiting = 0;
  for (const std::string& stop : stops_) {
    found = std::min(found, held_.find(stop));
    if (!last) waiting = std::max(waiting, Overlap(held_, stop));
  }
  const bool stopped = found != std::string::npos;
  const size_t certain = stopped ? found : held_.size() - waiting;
  ready_.append(held_, 0, certain);
  held_.erase(0, certain);
  certain_bytes_ += static_cast<int64_t>(certain);
  if (stopped) held_.clear();
  const auto known = [&](size_t token) { return token < ends_.size() && ends_[token] <= certain_bytes_; };
  while (known(static_cast<size_t>(certain_tokens_))) ++certain_tokens_;
  return stopped;
}

std::string ShownText::Take() { return std::exchange(ready_, {}); }

}  // namespace lattice::server
