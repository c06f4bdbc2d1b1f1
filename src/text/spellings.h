// Finds the spellings of tokens in a text: leftmost first, and at one place the longest.
#ifndef LATTICE_TEXT_SPELLINGS_H_
#define LATTICE_TEXT_SPELLINGS_H_

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::text {

// The tokens must outlive the object. Empty spellings are never found.
class Spellings {
 public:
  explicit Spellings(std::span<const SpecialToken> tokens) {
    for (const SpecialToken& token : tokens) {
      if (!token.text.empty()) by_first_[static_cast<uint8_t>(token.text.front())].push_back(&token);
      longest_ = std::max(longest_, token.text.size());
    }
    for (auto& list : by_first_) {
      std::stable_sort(list.begin(), list.end(), [](const SpecialToken* a, const SpecialToken* b) {
        return a->text.size() > b->text.size();
      });
    }
  }

  // The longest token whose spelling starts at text[at]; null when there is none.
  const SpecialToken* At(std::string_view text, size_t at) const {
    for (const SpecialToken* token : by_first_[static_cast<uint8_t>(text[at])]) {
      if (text.substr(at).starts_with(token->text)) return token;
    }
    return nullptr;
  }
  // Whether a spelling begins with the whole of `text`, which is not empty, and goes on behind it.
  bool Begins(std::string_view text) const {
    for (const SpecialToken* token : by_first_[static_cast<uint8_t>(text.front())]) {
      if (token->text.size() > text.size() && token->text.starts_with(text)) return true;
    }
    return false;
  }
  // Bytes of the longest spelling.
  size_t longest() const { return longest_; }

 private:
  size_t longest_ = 0;
  std::array<std::vector<const SpecialToken*>, 256> by_first_;  // by their first byte, longest first
};

// Appends the ids of the tokens that are spelled in `text` to `out`, and calls encode(part) for what stands
// between them, in order.
template <typename Encode>
void EncodeAround(const Spellings& spellings, std::string_view text, std::vector<int32_t>& out,
                  const Encode& encode) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const SpecialToken* token = spellings.At(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    if (at > begin) encode(text.substr(begin, at - begin));
    out.push_back(token->id);
    begin = at += token->text.size();
  }
  if (begin < text.size()) encode(text.substr(begin));
}

}  // namespace lattice::text

#endif  // LATTICE_TEXT_SPELLINGS_H_
