// The state that a sequence carries from token to token. Internal to the runtime; users have Session.
#ifndef LATTICE_RUNTIME_STATE_H_
#define LATTICE_RUNTIME_STATE_H_

#include <cstdint>
#include <vector>

#include "base/aligned_allocator.h"
#include "kernels/problem.h"
#include "model/config.h"

namespace lattice::runtime {

// One layer's part of SequenceState::fixed, in floats. It holds the tensors of model::ModelStates that do not grow:
// the last inputs of its convolutions, or the cache of its window; then the memory of its heads. One head's memory is
// contiguous: the matrix, then mlstm's normalizer and max.
struct LayerLayout {
  // Of a layer's config (ModelConfig::Layer).
  LayerLayout(const model::ModelConfig& config, int64_t begin);

  int64_t offset = 0;  // of the layer; those below are inside of it
  int64_t pre_conv = 0, conv_qk = 0, conv_v = 0;
  int64_t keys = 0, values = 0;                 // of a window
  int64_t gates[kernels::kMaxGates] = {};       // of the tokens in a window: [window, gate_sizes[i]]
  int64_t gate_sizes[kernels::kMaxGates] = {};  // 0: the gate is not kept
  int64_t memory = 0;
  int64_t head_size = 0;  // of one head's memory; 0 without one
  int64_t size = 0;       // 0 for attention without a window
};

struct StateLayout {
  explicit StateLayout(const model::ModelConfig& config);

  std::vector<LayerLayout> layers;
  int64_t size = 0;  // of all of them
};

struct SequenceState {
  int64_t position = 0;  // tokens so far
  // Aligned, so that the kernels can update a memory in place.
  std::vector<float, AlignedAllocator<float>> fixed;
  // The KV cache of attention without a window: per layer, [position, kv_heads, D]; empty for other layers.
  std::vector<std::vector<float>> keys, values;

  int64_t Bytes() const;
};

struct ModelParts;
// The state before the first token.
SequenceState InitialState(const ModelParts& parts);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_STATE_H_
