#include "server/engine/conversation.h"

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

}  // namespace lattice::server
