// A session together with the tokens it has read, which allow to rewind it, and its logits, which allow to
// continue it.
#ifndef LATTICE_SERVER_ENGINE_CONVERSATION_H_
#define LATTICE_SERVER_ENGINE_CONVERSATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/session.h"

namespace lattice::server {

// Used by one thread at a time.
struct Conversation {
  explicit Conversation(std::shared_ptr<const runtime::Model> model) : session(std::move(model)) {}
  explicit Conversation(runtime::Session state) : session(std::move(state)) {}

  int64_t position() const { return session.position(); }
  int64_t Bytes() const;
  Conversation Fork() const;
  // The tokens to read from AtBase() to `position`. Throws ApiError (400) when the conversation was never there.
  std::vector<int32_t> TokensUpTo(int64_t position) const;
  // A conversation as this one was at `base`.
  Conversation AtBase() const;

  runtime::Session session;
  // The state descends from one that a client uploaded. Forks and rewinds keep this flag.
  bool loaded = false;
  // A request failed while it changed the state, which must not be used any more.
  bool damaged = false;
  int64_t base = 0;              // position of the first of `tokens`; more than 0 for an uploaded state
  runtime::Snapshot base_state;  // the state at `base`; empty when nothing was uploaded
  std::vector<int32_t> tokens;   // read since `base`
  std::vector<float> logits;     // after the last token; empty when not known
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_CONVERSATION_H_
