// Counts the state of a sequence and the floating-point operations of a token.
#include "model/cost.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

// What the cache of a window holds of its tokens beside keys and values: the gates with which each will enter
// the memory.
std::vector<StateTensor> WaitingGates(const ModelConfig& layer, const kernels::Memory& memory) {
  std::vector<StateTensor> states;
  for (const kernels::GateInfo& gate : memory.gates) {
    if (gate.form == kernels::GateForm::kNone) continue;
    states.push_back(
        {"window_" + gate.name, {layer.window, layer.heads * (gate.per_slot ? layer.Slots() : 1)}});
  }
  return states;
}

// The states of one layer, whose config is that of ModelConfig::Layer.
std::vector<StateTensor> LayerStates(const ModelConfig& config, int64_t context) {
  const kernels::Memory& memory = kernels::FindMemory(config.mixer);
  const int64_t heads = config.heads, slots = config.Slots(), head_dim = config.HeadDim();
  const bool paper = config.block == BlockKind::kPaper && !memory.attention;
  std::vector<StateTensor> states;
  if (paper) {
    const int64_t tail = config.conv_width - 1;
    states = {{"pre_conv", {tail, config.width}}, {"conv_qk", {tail, heads * slots}}};
    if (memory.conv_v) states.push_back({"conv_v", {tail, config.width}});
  } else if (config.window > 0 || memory.attention) {
    const int64_t kept = config.window > 0 ? config.sinks + config.window : context;
    states = {{"keys", {kept, config.KvHeads(), head_dim}}, {"values", {kept, config.KvHeads(), head_dim}}};
    if (memory.attention) return states;
    for (StateTensor& gate : WaitingGates(config, memory)) states.push_back(std::move(gate));
  }
  states.push_back({"state", {heads, slots, head_dim}});
  for (const kernels::StatePart& part : memory.extra_state) {
    if (part.per_slot) {
      states.push_back({part.name, {heads, slots}});
    } else {
      states.push_back({part.name, {heads}});
    }
  }
  return states;
}

}  // namespace

int64_t StateTensor::Elements() const {
  const std::optional<int64_t> elements = TryElements(shape);
  Check(elements.has_value(), "[model] state ", name, " has more elements than 64 bits can count");
  return *elements;
}

std::vector<StateTensor> ModelStates(const ModelConfig& config, int64_t context) {
  Validate(config);
  Check(context >= 0, "[model] a context of ", context, " tokens; expected 0 or more");
  std::vector<StateTensor> states;
  for (int64_t i = 0; i < config.layers; ++i) {
    for (const StateTensor& state : LayerStates(config.Layer(i), context))
      states.push_back({StrCat("blocks.", i, ".", state.name), state.shape});
  }
  return states;
}

int64_t StateBytes(const ModelConfig& config, int64_t context) {
  int64_t elements = 0;
  for (const StateTensor& state : ModelStates(config, context)) {
    elements = CheckedAdd(elements, state.Elements(), "size of the state");
  }
  return CheckedMul<int64_t>(elements, sizeof(float), "size of the state");
}

Flops FlopsPerToken(const ModelConfig& config, int64_t context) {
  const ParameterCounts counts = CountParameters(config);
  const int64_t lookup = config.tie_embedding ? 0 : config.vocab_size * config.width;
  Flops flops;
  flops.weights = 2 * (counts.total - lookup);
  const int64_t cells = config.heads * config.Slots() * config.HeadDim();
  for (int64_t i = 0; i < config.layers; ++i) {
    const ModelConfig layer = config.Layer(i);
    const kernels::Memory& memory = kernels::FindMemory(layer.mixer);
    // Position t of T attends to t tokens, (T + 1) / 2 on average, with a product with the keys and one with
    // the values for each; with a window to at most as many as it holds.
    int64_t attended = memory.attention ? context + 1 : 0;
    if (layer.window > 0) attended = std::min(context + 1, 2 * (layer.window + layer.sinks));
    const int64_t of_layer = CheckedAdd(CheckedMul(2 * config.width, attended, "arithmetic of a token"),
                                        memory.flops_per_cell * cells, "arithmetic of a token");
    flops.mixer = CheckedAdd(flops.mixer, of_layer, "arithmetic of a token");
  }
  return flops;
}

}  // namespace lattice::model
