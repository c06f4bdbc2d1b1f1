// The weights of a model, block by block, as the forward pass wants them. Inside the runtime only.
#ifndef LATTICE_RUNTIME_MODEL_PARTS_H_
#define LATTICE_RUNTIME_MODEL_PARTS_H_

#include <vector>

#include "kernels/registry.h"
#include "runtime/memory_rule.h"
#include "runtime/state.h"
#include "runtime/weights.h"

namespace lattice::runtime {

// A gate in float32: u W^T + bias. Absent (weight.rows is 0) where the memory makes none from its input.
struct GateParts {
  WeightMatrix weight;
  const float* bias = nullptr;
  WeightMatrix down;         // kSlotSigmoid: u is brought to few columns first
  std::vector<float> decay;  // kDecay: -exp(log_decay)
};

// weight [W, channels]: transposed, as the kernel wants it.
struct ConvParts {
  std::vector<float> weight;
  const float* bias = nullptr;
  int64_t channels = 0;
};

// What a memory does not have stays empty.
struct BlockParts {
  const float *pre_norm = nullptr, *mix_norm = nullptr, *ffn_norm = nullptr;
  ConvParts pre_conv, conv_q, conv_k, conv_v;
  WeightMatrix qk, q, k, v, gate, out, ffn_gate, ffn_up, ffn_down;
  std::vector<GateParts> gates;  // in the order of the memory's description
  const float *skip = nullptr, *state0 = nullptr;
  const float *out_norm_weight = nullptr, *out_norm_bias = nullptr;
};

struct ModelParts {
  model::ModelConfig config;
  MemoryRule rule;
  const kernels::Memory* memory = nullptr;
  Weights weights;
  StateLayout layout;
  WeightMatrix embed, head;
  const float* final_norm = nullptr;
  std::vector<BlockParts> blocks;

  ModelParts(const model::ModelConfig& model_config, Weights model_weights);
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MODEL_PARTS_H_
