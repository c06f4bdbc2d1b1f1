// What a sequence carries from token to token. Inside the runtime only; users have Session.
#ifndef LATTICE_RUNTIME_STATE_H_
#define LATTICE_RUNTIME_STATE_H_

#include <cstdint>
#include <vector>

#include "base/aligned_allocator.h"
#include "model/config.h"

namespace lattice::runtime {

// Where each layer's part lies in SequenceState::fixed, in floats. The parts are those of
// model::ModelStates; one head's memory is contiguous, with mlstm's normalizer and max behind its matrix.
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
  // Aligned, so that kernels can step a memory where it lies.
  std::vector<float, AlignedAllocator<float>> fixed;
  // Attention only: by layer, [position, C].
  std::vector<std::vector<float>> keys, values;

  int64_t Bytes() const;
};

struct ModelParts;
// The state of a sequence that has not begun.
SequenceState InitialState(const ModelParts& parts);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_STATE_H_
