// An upper bound on the memory of a sequence's state, for admission control.
#ifndef LATTICE_SERVER_ENGINE_STATE_COST_H_
#define LATTICE_SERVER_ENGINE_STATE_COST_H_

#include <cstdint>

#include "server/engine/served_model.h"

namespace lattice::server {

// A recurrent state has a fixed size; a transformer's KV cache grows with every token.
class StateCost {
 public:
  explicit StateCost(const ServedModel& served);
  // The most bytes that a sequence of `tokens` takes, including its token ids and logits.
  int64_t Bytes(int64_t tokens) const { return fixed_ + per_token_ * tokens; }
  int64_t per_token() const { return per_token_; }

 private:
  int64_t fixed_ = 0, per_token_ = 0;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_STATE_COST_H_
