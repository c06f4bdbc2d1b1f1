// A sequence of tokens that a model has read, with what is needed to go on from it and to go back.
#ifndef LATTICE_SERVER_ENGINE_CONVERSATION_H_
#define LATTICE_SERVER_ENGINE_CONVERSATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/session.h"

namespace lattice::server {

// One thread at a time.
struct Conversation {
  explicit Conversation(std::shared_ptr<const runtime::Model> model) : session(std::move(model)) {}
  explicit Conversation(runtime::Session state) : session(std::move(state)) {}

  int64_t position() const { return session.position(); }
  int64_t Bytes() const;
  Conversation Fork() const;

  runtime::Session session;
  // The state, or one that it goes back to, came from a client. Forks and rewinds keep this.
  bool loaded = false;
  // A request failed while it changed the state, which is not to be used then.
  bool damaged = false;
  int64_t base = 0;  // position of the first of `tokens`; more than 0 when a state came from outside
  runtime::Snapshot base_state;  // the state there; empty when nothing was loaded
  std::vector<int32_t> tokens;   // read since `base`
  std::vector<float> logits;     // behind the last token; empty when not known
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_CONVERSATION_H_
