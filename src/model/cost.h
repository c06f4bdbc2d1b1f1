// The cost of running a model: the size of a sequence's state and the operations per token.
#ifndef LATTICE_MODEL_COST_H_
#define LATTICE_MODEL_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.h"

namespace lattice::model {

// A float32 tensor that one sequence carries from token to token.
struct StateTensor {
  std::string name;
  std::vector<int64_t> shape;

  int64_t Elements() const;
};

// All states of a sequence after `context` tokens, block by block:
//   blocks.0.pre_conv [W-1, C], .conv_qk [W-1, H*M], .conv_v [W-1, C]   the last inputs of the convolutions
//   blocks.0.state [H, M, D]; mlstm also .normalizer [H, M] and .max [H]
//   transformer: blocks.0.keys and .values [context, kv_heads, D], the only ones that grow
//   +window: .keys and .values [sinks + window, kv_heads, D] whatever the context is, and .window_<gate> [window, ...], the
//     gates of the tokens in the window. Token p is in row p if p < sinks, else in row sinks + (p - sinks) % window;
//     its gates are in row (p - sinks) % window
std::vector<StateTensor> ModelStates(const ModelConfig& config, int64_t context);
int64_t StateBytes(const ModelConfig& config, int64_t context);

// Floating-point operations per token, averaged over a sequence of `context` tokens.
struct Flops {
  // 2 per parameter, as the paper counts; 0 for an untied embedding, which is only looked up.
  int64_t weights = 0;
  // On the state: flops_per_cell * H * M * D per block; for attention 4 C times the mean position.
  int64_t mixer = 0;

  int64_t Forward() const { return weights + mixer; }
  // Forward and backward: three times the forward pass, so 6 per parameter.
  int64_t Training() const { return 3 * Forward(); }
};
Flops FlopsPerToken(const ModelConfig& config, int64_t context);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_COST_H_
