// The Transformer++ block: x += attention(norm(x)) with rotary positions;  x += swiglu(norm(x))
#include <ATen/ATen.h>

#include "nn/feed_forward.h"
#include "nn/layers.h"
#include "nn/projections.h"
#include "ops/recurrence.h"
#include "ops/row_norm.h"
#include "ops/vectors.h"

namespace lattice::nn {
namespace {

class AttentionBlock : public Block {
 public:
  AttentionBlock(const model::ModelConfig& config, const Lookup& parameter)
      : config_(config),
        feed_forward_(config, parameter),
        norm_(parameter("mix_norm.weight")),
        rope_rates_(RopeRateTensor(config, config.HeadDim() / 2)),
        in_({parameter("mixer.q.weight"), parameter("mixer.k.weight"), parameter("mixer.v.weight")}),
        out_({parameter("mixer.out.weight")}) {}

  MixerInput Before(const at::Tensor& x, BlockState*) const override {
    return {x, RmsNorm(x, norm_, config_.norm_eps, Bf16Scope::active())};
  }
  at::Tensor After(const at::Tensor& stream, const at::Tensor& mixed) const override {
    return feed_forward_(stream, mixed);
  }

  at::Tensor Mix(const at::Tensor& u, BlockState* state) const override {
    std::optional<at::Tensor> past_k, past_v;
    int64_t position = 0;
    if (state != nullptr && state->keys.defined()) {
      past_k = state->keys;
      past_v = state->values;
      position = state->keys.size(1);
    }
    const std::vector<at::Tensor> projected = in_(u);
    const at::Tensor positions = at::arange(position, position + u.size(1));
    const at::Tensor q = Rotate(Heads(projected[0]), positions, rope_rates_);
    const at::Tensor k = Rotate(Heads(projected[1]), positions, rope_rates_);
    const auto [y, keys, values] = Attention(q, k, Heads(projected[2]), past_k, past_v);
    if (state != nullptr) {
      state->keys = state->Left(keys);
      state->values = state->Left(values);
      state->position += u.size(1);
    }
    return out_.One(y.reshape(u.sizes()));
  }

 private:
  // [B,T,H,D], or with the heads of keys and values.
  at::Tensor Heads(const at::Tensor& x) const {
    return Wide(x).view({x.size(0), x.size(1), -1, config_.HeadDim()});
  }

  const model::ModelConfig config_;
  FeedForward feed_forward_;
  at::Tensor norm_, rope_rates_;
  Projections in_, out_;
};

}  // namespace

std::unique_ptr<Block> MakeAttentionBlock(const model::ModelConfig& config, const Lookup& parameter) {
  return std::make_unique<AttentionBlock>(config, parameter);
}

}  // namespace lattice::nn
