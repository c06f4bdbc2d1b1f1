// Tokenises a context and its continuation, with the boundary where the context alone would end.
#include "eval/token_pair.h"

#include <algorithm>

#include "base/error.h"
#include "eval/python_text.h"

namespace lattice::eval {
namespace {

int32_t PrefixToken(const text::Tokenizer& tokenizer) {
  const int32_t prefix = tokenizer.special().Begin();
  Check(prefix >= 0, "the context is empty, and the ", tokenizer.kind(),
        " tokenizer has no special id to begin a text with");
  return prefix;
}

TokenPair EncodeAlone(const text::Tokenizer& tokenizer, const std::string& continuation) {
  TokenPair pair{{PrefixToken(tokenizer)}, tokenizer.Encode(continuation)};
  if (pair.continuation.size() > 1 && pair.continuation.front() == pair.context.front())
    pair.continuation.erase(pair.continuation.begin());
  return pair;
}

}  // namespace

TokenPair PairEncoder::Encode(const std::string& context, const std::string& continuation) {
  const size_t space = TrailingSpace(context);
  const std::string head = context.substr(0, context.size() - space);
  const std::string tail = context.substr(head.size()) + continuation;
  TokenPair pair;
  if (head.empty()) {
    pair = EncodeAlone(tokenizer_, tail);
  } else {
    if (head != head_) {
      head_ids_ = tokenizer_.Encode(head);
      head_ = head;
    }
    pair.context = head_ids_;
    const std::vector<int32_t> whole = tokenizer_.Encode(head + tail);
    const size_t split = std::min(whole.size(), pair.context.size());
    pair.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(split), whole.end());
    if (add_bos_) {
      const int32_t bos = tokenizer_.special().bos;
      Check(bos >= 0, "the ", tokenizer_.kind(), " tokenizer has no beginning-of-text id for --add-bos true");
      pair.context.insert(pair.context.begin(), bos);
    }
  }
  Check(!pair.context.empty() && !pair.continuation.empty(), "the continuation \"", continuation,
        "\" has no tokens of its own");
  return pair;
}

bool Truncate(TokenPair& pair, int64_t max_length) {
  const auto target = static_cast<int64_t>(pair.continuation.size());
  const auto length = static_cast<int64_t>(pair.context.size()) + target - 1;
  if (max_length == 0 || length <= max_length) return false;
  Check(target <= max_length, "the continuation has ", target, " tokens, more than --max-length ", max_length,
        " allows");
  pair.context.erase(pair.context.begin(), pair.context.begin() + (length - max_length));
  return true;
}

}  // namespace lattice::eval
