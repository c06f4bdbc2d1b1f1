#include "server/engine/state_cost.h"

#include "runtime/session.h"

namespace lattice::server {

StateCost::StateCost(const ServedModel& served) {
  const model::ModelConfig& config = served.model->config();
  constexpr int64_t kNumber = sizeof(float);
  // A growing vector has up to twice the capacity that it needs.
  constexpr int64_t kSlack = 2;
  fixed_ = runtime::Session(served.model).Bytes() + config.vocab_size * kNumber;
  per_token_ = kSlack * kNumber;  // its id
  for (int64_t i = 0; i < config.layers; ++i) {
    if (config.KeepsAll(i)) per_token_ += kSlack * config.KvHeads() * config.HeadDim() * 2 * kNumber;
  }
}

}  // namespace lattice::server
