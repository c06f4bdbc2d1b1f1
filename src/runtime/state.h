// The state that a sequence carries from token to token. Internal to the runtime; users have Session.
#ifndef LATTICE_RUNTIME_STATE_H_
#define LATTICE_RUNTIME_STATE_H_

#include <cstdint>
#include <vector>

#include "base/aligned_allocator.h"
#include "model/config.h"

namespace lattice::runtime {

// The layout of SequenceState::fixed, in floats. A layer holds the tensors of model::ModelStates: the last
// inputs of its convolutions, then the memory of its heads. One head's memory is contiguous: the matrix, then
// mlstm's normalizer and max.
struct StateLayout {
  explicit StateLayout(const model::ModelConfig& config);

  int64_t pre_conv = 0, conv_qk = 0, conv_v = 0, memory = 0;  // offsets inside a layer
  int64_t conv_qk_channels = 0, conv_v_channels = 0;
  int64_t head_size = 0;   // of one head's memory
  int64_t layer_size = 0;  // 0 for attention
  int64_t layers = 0;
};

struct SequenceState {
  int64_t position = 0;  // tokens so far
  // Aligned, so that the kernels can update a memory in place.
  std::vector<float, AlignedAllocator<float>> fixed;
  // The KV cache, for attention only: per layer, [position, kv_heads, D].
  std::vector<std::vector<float>> keys, values;

  int64_t Bytes() const;
};

struct ModelParts;
// The state before the first token.
SequenceState InitialState(const ModelParts& parts);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_STATE_H_
