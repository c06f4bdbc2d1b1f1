// One block of the model: a mixer over time and a feed-forward part, each added to the residual stream.
//
// Shapes: x [B,T,C]; B batch, T time, C model width, H heads, M slots, D head width, W width of the
// convolutions.
#ifndef LATTICE_NN_BLOCK_H_
#define LATTICE_NN_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/config.h"

namespace lattice::nn {

// What one block carries from token to token; the tensors a mixer does not use stay undefined.
struct BlockState {
  at::Tensor pre_conv, conv_qk, conv_v;  // the last W-1 inputs of the convolutions [B,W-1,channels]
  at::Tensor memory;                     // [B,H,M,D]; mlstm [B,H,M*D+M+1]
  at::Tensor keys, values;          // attention: [B,P,kv_heads,D], growing; of a window only what it sees
  std::vector<at::Tensor> waiting;  // the gates of the tokens in a window, in the order of the memory's
  int64_t position = 0;             // tokens so far
  // Whether what a block leaves here stays in the graph. Then gradients flow through states, from the tokens of one call
  // to those of the call before; else (truncated backpropagation, inference) they end there.
  bool attached = false;

  // A tensor as a block leaves it here.
  at::Tensor Left(const at::Tensor& x) const { return attached ? x : x.detach(); }
};

// The tensors of a state but the waiting gates, by name.
inline constexpr std::array<std::pair<const char*, at::Tensor BlockState::*>, 6> kStateTensors = {{
    {"pre_conv", &BlockState::pre_conv},
    {"conv_qk", &BlockState::conv_qk},
    {"conv_v", &BlockState::conv_v},
    {"memory", &BlockState::memory},
    {"keys", &BlockState::keys},
    {"values", &BlockState::values},
}};

// A state per block; empty means "from the start".
using States = std::vector<BlockState>;

// Looks a parameter of this block up by its name behind "blocks.<i>.".
using Lookup = std::function<at::Tensor(const std::string& name)>;

class Block {
 public:
  virtual ~Block() = default;
  // x [B,T,C] -> [B,T,C]. `state` null: from the start, and no state is returned; else read (when it has content)
  // and replaced, detached from the graph unless it is attached.
  at::Tensor Forward(const at::Tensor& x, BlockState* state) const {
    const MixerInput in = Before(x, state);
    return After(in.stream, Mix(in.u, state));
  }

  // The same in three parts: what the mixer sees of the stream, what it adds to it, and the feed-forward part.
  struct MixerInput {
    at::Tensor stream, u;  // the stream as the mixer finds it, and normalised
  };
  virtual MixerInput Before(const at::Tensor& x, BlockState* state) const = 0;
  virtual at::Tensor Mix(const at::Tensor& u, BlockState* state) const = 0;
  virtual at::Tensor After(const at::Tensor& stream, const at::Tensor& mixed) const = 0;
};

// The block of a layer, whose config is that of ModelConfig::Layer: attention, a memory in the paper's block, or
// a memory and a window in a block of attention.
std::unique_ptr<Block> MakeBlock(const model::ModelConfig& config, const Lookup& parameter);

}  // namespace lattice::nn

#endif  // LATTICE_NN_BLOCK_H_
