// One block of the model: a mixer over time and a feed-forward part, each added to the residual stream.
//
// Shapes: x [B,T,C]; B batch, T time, C model width, H heads, M slots, D head width, W width of the
// convolutions.
#ifndef LATTICE_NN_BLOCK_H_
#define LATTICE_NN_BLOCK_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"

namespace lattice::nn {

// What one block carries from token to token; the tensors a mixer does not use stay undefined.
struct BlockState {
  at::Tensor pre_conv, conv_qk, conv_v;  // the last W-1 inputs of the convolutions [B,W-1,channels]
  at::Tensor memory;                     // [B,H,M,D]; mlstm [B,H,M*D+M+1]
  at::Tensor keys, values;               // transformer: [B,P,kv_heads,D], growing
  int64_t position = 0;                  // tokens so far
};

// A state per block; empty means "from the start".
using States = std::vector<BlockState>;

// Looks a parameter of this block up by its name behind "blocks.<i>.".
using Lookup = std::function<at::Tensor(const std::string& name)>;

class Block {
 public:
  virtual ~Block() = default;
  // x [B,T,C] -> [B,T,C]. `state` null: from the start, and no state is returned; else read (when it has content)
  // and replaced, detached from the graph.
  virtual at::Tensor Forward(const at::Tensor& x, BlockState* state) const = 0;
};

// The block for config.mixer: a memory, or the transformer's.
std::unique_ptr<Block> MakeBlock(const model::ModelConfig& config, const Lookup& parameter);

}  // namespace lattice::nn

#endif  // LATTICE_NN_BLOCK_H_
