// The memory layout of a sequence's state, and the state before the first token.
#include "runtime/state.h"

#include <algorithm>

#include "kernels/registry.h"
#include "runtime/model_parts.h"

namespace lattice::runtime {

LayerLayout::LayerLayout(const model::ModelConfig& config, int64_t begin) : offset(begin) {
  const kernels::Memory& info = kernels::FindMemory(config.mixer);
  const int64_t slots = config.Slots();
  const auto take = [&](int64_t count) {
    const int64_t at = size;
    size += count;
    return at;
  };
  if (config.window > 0) {
    const int64_t cached = (config.window + config.sinks) * config.KvHeads() * config.HeadDim();
    keys = take(cached);
    values = take(cached);
    for (size_t i = 0; i < info.gates.size(); ++i) {
      if (info.gates[i].form == kernels::GateForm::kNone) continue;
      gate_sizes[i] = config.heads * (info.gates[i].per_slot ? slots : 1);
      gates[i] = take(config.window * gate_sizes[i]);
    }
  }
  if (info.attention) return;
  if (config.block == model::BlockKind::kPaper) {
    const int64_t tail = config.conv_width - 1;
    pre_conv = take(tail * config.width);
    conv_qk = take(tail * config.heads * slots);
    conv_v = take(info.conv_v ? tail * config.width : 0);
  }
  head_size = info.StateSize(slots, config.HeadDim());
  memory = take(config.heads * head_size);
}

StateLayout::StateLayout(const model::ModelConfig& config) {
  for (int64_t i = 0; i < config.layers; ++i) {
    layers.emplace_back(config.Layer(i), size);
    size += layers.back().size;
  }
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
  state.fixed.assign(static_cast<size_t>(layout.size), 0.0f);
  if (parts.config.Grows()) {
    state.keys.resize(parts.blocks.size());
    state.values.resize(parts.blocks.size());
  }
  for (size_t i = 0; i < parts.blocks.size(); ++i) {
    const LayerLayout& layer = layout.layers[i];
    const float* begin = parts.blocks[i].state0;
    if (begin == nullptr) continue;
    std::copy_n(begin, parts.config.heads * layer.head_size,
                &state.fixed[static_cast<size_t>(layer.offset + layer.memory)]);
  }
  return state;
}

}  // namespace lattice::runtime
