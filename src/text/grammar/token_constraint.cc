// From grammars over bytes to choices of tokens.
#include "text/grammar/token_constraint.h"

#include <algorithm>

#include "base/error.h"

namespace lattice::text::grammar {

TokenTable::TokenTable(const Tokenizer& tokenizer) : end_(tokenizer.special().eot) {
  by_id_.resize(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    std::string& bytes = by_id_[static_cast<size_t>(id)];
    tokenizer.DecodeTo(id, false, bytes);
    if (!bytes.empty()) tokens_.emplace_back(bytes, id);
  }
  std::sort(tokens_.begin(), tokens_.end());
}

TokenConstraint::TokenConstraint(std::shared_ptr<const Grammar> grammar, const TokenTable& table)
    : grammar_(std::move(grammar)), table_(table), follower_(*grammar_), state_(follower_.start()) {}

const std::vector<bool>& TokenConstraint::Allowed() {
  for (const Answer& answer : kept_) {
    if (answer.state == state_) return answer.allowed;
  }
  std::vector<bool> allowed(table_.size(), false);
  bool any = false;
  // States after the first bytes of the token before; a token that begins alike starts from there.
  std::vector<const State*> states = {state_};
  std::string_view before;
  for (const auto& [bytes, id] : table_.tokens()) {
    const size_t shared = static_cast<size_t>(
        std::mismatch(bytes.begin(), bytes.end(), before.begin(), before.end()).first - bytes.begin());
    states.resize(std::min(states.size(), shared + 1));
    before = bytes;
    while (states.size() <= bytes.size()) {
      const State* const next =
          follower_.Next(states.back(), static_cast<unsigned char>(bytes[states.size() - 1]));
      if (next == nullptr) break;
      states.push_back(next);
    }
    if (states.size() <= bytes.size()) continue;
    allowed[static_cast<size_t>(id)] = any = true;
  }
  if (table_.end() >= 0 && Follower::MayEnd(state_)) allowed[static_cast<size_t>(table_.end())] = any = true;
  Check(any, "[grammar] no token of this model can go on with the text as response_format wants it");
  Answer answer{state_, std::move(allowed)};
  if (kept_.size() < kKept) {
    kept_.push_back(std::move(answer));
    return kept_.back().allowed;
  }
  oldest_ = (oldest_ + 1) % kKept;
  kept_[oldest_] = std::move(answer);
  return kept_[oldest_].allowed;
}

void TokenConstraint::Accept(int32_t id) {
  for (const char byte : table_.BytesOf(id)) {
    const State* const next = follower_.Next(state_, static_cast<unsigned char>(byte));
    Check(next != nullptr, "[grammar] a token was chosen that may not come");
    state_ = next;
  }
  follower_.Refill(kStepsForToken);
  if (follower_.bytes() <= kKeptBytes) return;
  kept_.clear();
  oldest_ = 0;
  state_ = follower_.ForgetBut(state_);
  Check(follower_.bytes() <= kKeptBytes, "[grammar] it is too ambiguous: the ways to go on take more than ",
        kKeptBytes >> 20, " MiB");
}

}  // namespace lattice::text::grammar
