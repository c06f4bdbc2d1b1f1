// Chooses the micro-batch size from the free memory and an estimate of the saved activations.
#include <algorithm>
#include <fstream>
#include <string>

#include "model/tensors.h"
#include "train/trainer.h"

namespace lattice::train {
namespace {

constexpr int64_t kMostTokens = 8192;

// Bytes of available memory, or 4 GiB where the system does not report it.
int64_t FreeMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  int64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    file.ignore(64, '\n');
  }
  return int64_t{4} << 30;
}

// The saved activations of one token in float32: per block about 18 vectors of the model's width, 3 of the
// SwiGLU's hidden width, and a state every 32 tokens. With bfloat16 they are about two thirds of it.
int64_t ActivationBytes(const model::ModelConfig& config) {
  const int64_t state = config.width * config.Slots() / 32;
  return config.layers * (18 * config.width + 3 * config.Hidden() + state) * int64_t{sizeof(float)};
}

}  // namespace

int64_t ChooseMicroBatch(const model::Config& config, int64_t ranks, int64_t on_this_host) {
  const int64_t rows = std::max<int64_t>(1, config.train.batch_tokens / config.train.seq_len / ranks);
  // Weights, gradients and the two moments of AdamW.
  const int64_t fixed = model::CountParameters(config.model).total * 4 * int64_t{sizeof(float)};
  const int64_t room = std::max<int64_t>(0, FreeMemory() / 2 / on_this_host - fixed);
  // Of a shared sequence a rank has one piece at a time, and up to one for every rank that waits for its gradients.
  const int64_t shared = config.train.sequence_ranks;
  const int64_t piece = config.train.seq_len / shared;
  const int64_t held = config.train.recompute ? 1 : shared;
  const int64_t tokens = std::min(kMostTokens, room / ActivationBytes(config.model) / held);
  // Without a micro-batch for every rank that shares them, some would be idle.
  const int64_t most = std::max<int64_t>(1, rows / shared);
  int64_t micro = std::clamp<int64_t>(tokens / piece, 1, most);
  while (rows % micro != 0) --micro;
  return micro;
}

}  // namespace lattice::train
