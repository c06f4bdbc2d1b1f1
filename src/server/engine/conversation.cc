// Copies and earlier states of a conversation.
#include "server/engine/conversation.h"

#include "server/engine/api_error.h"

namespace lattice::server {

int64_t Conversation::Bytes() const {
  const size_t numbers = tokens.capacity() * sizeof(int32_t) + logits.capacity() * sizeof(float);
  return session.Bytes() + static_cast<int64_t>(numbers) + (base_state.empty() ? 0 : base_state.Bytes());
}

Conversation Conversation::Fork() const {
  Conversation copy(session.Fork());
  copy.loaded = loaded;
  copy.base = base;
  copy.base_state = base_state;
  copy.tokens = tokens;
  copy.logits = logits;
  return copy;
}

std::vector<int32_t> Conversation::TokensUpTo(int64_t position) const {
  const int64_t last = base + static_cast<int64_t>(tokens.size());
  if (position < base || position > last) {
    throw ApiError(
        400, StrCat("position ", position, " is not known; this session can go to ", base, " up to ", last),
        "position");
  }
  return {tokens.begin(), tokens.begin() + (position - base)};
}

Conversation Conversation::AtBase() const {
  Conversation start(session.shared_model());
  start.loaded = loaded;
  start.base = base;
  start.base_state = base_state;
  if (!base_state.empty()) start.session.Rewind(base_state);
  return start;
}

}  // namespace lattice::server
