// Counts the state of a sequence and the floating-point operations of a token.
#include "model/cost.h"

#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

std::vector<StateTensor> BlockStates(const ModelConfig& config, int64_t context) {
  const kernels::Memory& memory = kernels::FindMemory(config.mixer);
  const int64_t heads = config.heads, slots = config.Slots(), head_dim = config.HeadDim();
  if (memory.attention) {
    const std::vector<int64_t> cache = {context, config.KvHeads(), head_dim};
    return {{"keys", cache}, {"values", cache}};
  }
  const int64_t tail = config.conv_width - 1;
  std::vector<StateTensor> states = {{"pre_conv", {tail, config.width}}, {"conv_qk", {tail, heads * slots}}};
  if (memory.conv_v) states.push_back({"conv_v", {tail, config.width}});
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
  const std::vector<StateTensor> block = BlockStates(config, context);
  std::vector<StateTensor> states;
  for (int64_t i = 0; i < config.layers; ++i) {
    for (const StateTensor& state : block)
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
  const kernels::Memory& memory = kernels::FindMemory(config.mixer);
  const ParameterCounts counts = CountParameters(config);
  const int64_t lookup = config.tie_embedding ? 0 : config.vocab_size * config.width;
  Flops flops;
  flops.weights = 2 * (counts.total - lookup);
  const int64_t cells = config.heads * config.Slots() * config.HeadDim();
  // Position t of T attends to t tokens, (T + 1) / 2 on average, with a product with the keys and one with
  // the values for each.
  const int64_t per_block =
      memory.attention ? 2 * config.width * (context + 1) : memory.flops_per_cell * cells;
  flops.mixer = CheckedMul(config.layers, per_block, "arithmetic of a token");
  return flops;
}

}  // namespace lattice::model
