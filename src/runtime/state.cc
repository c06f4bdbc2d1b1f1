// The memory layout of a sequence's state, and the state before the first token.
#include "runtime/state.h"

#include <algorithm>

#include "kernels/registry.h"
#include "runtime/model_parts.h"

namespace lattice::runtime {

StateLayout::StateLayout(const model::ModelConfig& config) : layers(config.layers) {
  const kernels::Memory& info = kernels::FindMemory(config.mixer);
  if (info.attention) return;
  const int64_t tail = config.conv_width - 1, slots = config.Slots();
  conv_qk_channels = config.heads * slots;
  conv_v_channels = info.conv_v ? config.width : 0;
  head_size = info.StateSize(slots, config.HeadDim());
  conv_qk = pre_conv + tail * config.width;
  conv_v = conv_qk + tail * conv_qk_channels;
  memory = conv_v + tail * conv_v_channels;
  layer_size = memory + config.heads * head_size;
}

int64_t SequenceState::Bytes() const {
  size_t floats = fixed.capacity();
  for (const auto& part : keys) floats += part.capacity();
  for (const auto& part : values) floats += part.capacity();
  return static_cast<int64_t>(floats * sizeof(float));
}

SequenceState InitialState(const ModelParts& parts) {
  const StateLayout& layout = parts.layout;
  SequenceState state;
  state.fixed.assign(static_cast<size_t>(layout.layers * layout.layer_size), 0.0f);
  if (parts.memory->attention) {
    state.keys.resize(parts.blocks.size());
    state.values.resize(parts.blocks.size());
  }
  for (size_t layer = 0; layer < parts.blocks.size(); ++layer) {
    const float* begin = parts.blocks[layer].state0;
    if (begin == nullptr) continue;
    float* memory =
        &state.fixed[layer * static_cast<size_t>(layout.layer_size) + static_cast<size_t>(layout.memory)];
    std::copy_n(begin, parts.config.heads * layout.head_size, memory);
  }
  return state;
}

}  // namespace lattice::runtime
