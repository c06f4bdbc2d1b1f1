// The weights of a model, block by block, in the layout of the forward pass. Internal to the runtime.
#ifndef LATTICE_RUNTIME_MODEL_PARTS_H_
#define LATTICE_RUNTIME_MODEL_PARTS_H_

#include <vector>

#include "kernels/registry.h"
#include "runtime/memory_rule.h"
#include "runtime/state.h"
#include "runtime/weights.h"

namespace lattice::runtime {

// The weights of one gate, in float32: u W^T + bias. weight.rows is 0 for a gate that is not computed from
// the input.
struct GateParts {
  WeightMatrix weight;
  const float* bias = nullptr;
  WeightMatrix down;         // kSlotSigmoid: the first factor of a low-rank weight; `weight` is the second
  std::vector<float> decay;  // kDecay: -exp(log_decay)
};

// A short convolution. The weight is stored transposed, [W, channels], as the kernel reads it.
struct ConvParts {
  std::vector<float> weight;
  const float* bias = nullptr;
  int64_t channels = 0;
};

// One block: what it is, and its weights. Parts that it does not have stay empty.
struct BlockParts {
  explicit BlockParts(const model::ModelConfig& layer) : config(layer), rule(layer), memory(rule.memory) {}

  model::ModelConfig config;  // ModelConfig::Layer
  MemoryRule rule;
  const kernels::Memory* memory;
  const float *pre_norm = nullptr, *mix_norm = nullptr, *ffn_norm = nullptr;
  ConvParts pre_conv, conv_q, conv_k, conv_v;
  WeightMatrix qk, q, k, v, gate, out, ffn_gate, ffn_up, ffn_down;
  std::vector<GateParts> gates;  // in the order of the memory's description
  const float *skip = nullptr, *state0 = nullptr;
  const float* amplitude = nullptr;  // of a memory in a block of attention
  GateParts share;                   // of that memory beside a window
  const float *out_norm_weight = nullptr, *out_norm_bias = nullptr;
};

struct ModelParts {
  model::ModelConfig config;
  Weights weights;
  StateLayout layout;
  WeightMatrix embed, head;
  const float* final_norm = nullptr;
  bool rotates = false;  // some layer has the rotary positions of attention
  std::vector<BlockParts> blocks;

  ModelParts(const model::ModelConfig& model_config, Weights model_weights);
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MODEL_PARTS_H_
