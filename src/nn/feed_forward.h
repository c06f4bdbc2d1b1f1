// The feed-forward part of every block.
#ifndef LATTICE_NN_FEED_FORWARD_H_
#define LATTICE_NN_FEED_FORWARD_H_

#include "nn/block.h"
#include "nn/layers.h"
#include "nn/projections.h"
#include "ops/row_norm.h"
#include "ops/swiglu.h"

namespace lattice::nn {

class FeedForward {
 public:
  FeedForward(const model::ModelConfig& config, const Lookup& parameter)
      : eps_(config.norm_eps),
        norm_(parameter("ffn_norm.weight")),
        gate_up_({parameter("ffn.gate.weight"), parameter("ffn.up.weight")}),
        down_({parameter("ffn.down.weight")}) {}

  // The stream s = x + delta and what follows: s + down(silu(gate(u)) * up(u)) with u = norm(s).
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& delta) const {
    const auto [sum, u] = AddRmsNorm(x, delta, norm_, eps_, Bf16Scope::active());
    const std::vector<at::Tensor> hidden = gate_up_(u);
    return sum + Wide(down_.One(SiluTimes(hidden[0], hidden[1])));
  }

 private:
  double eps_;
  at::Tensor norm_;
  Projections gate_up_, down_;
};

// The kinds of block, see MakeBlock.
std::unique_ptr<Block> MakeMemoryBlock(const model::ModelConfig& config, const Lookup& parameter);
std::unique_ptr<Block> MakeAttentionBlock(const model::ModelConfig& config, const Lookup& parameter);
std::unique_ptr<Block> MakeJoinedBlock(const model::ModelConfig& config, const Lookup& parameter);

}  // namespace lattice::nn

#endif  // LATTICE_NN_FEED_FORWARD_H_
