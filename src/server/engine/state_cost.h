// How much memory the state of a sequence takes, before there is one.
#ifndef LATTICE_SERVER_ENGINE_STATE_COST_H_
#define LATTICE_SERVER_ENGINE_STATE_COST_H_

#include <cstdint>

#include "server/engine/served_model.h"

namespace lattice::server {

// A recurrent memory has one size; the cache of a transformer grows by the token.
class StateCost {
 public:
  explicit StateCost(const ServedModel& served);
  // At most so many bytes for a sequence of `tokens`, with the ids and the logits that are kept beside it.
  int64_t Bytes(int64_t tokens) const { return fixed_ + per_token_ * tokens; }
  int64_t per_token() const { return per_token_; }

 private:
  int64_t fixed_ = 0, per_token_ = 0;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_STATE_COST_H_
