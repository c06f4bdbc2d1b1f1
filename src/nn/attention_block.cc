// The Transformer++ block: x += attention(norm(x)) with rotary positions;  x += swiglu(norm(x))
#include <ATen/ATen.h>

#include "nn/feed_forward.h"
#include "nn/layers.h"
#include "ops/recurrence.h"

namespace lattice::nn {
namespace {

class AttentionBlock : public Block {
 public:
  AttentionBlock(const model::ModelConfig& config, const Lookup& parameter)
      : config_(config),
        feed_forward_(config, parameter),
        norm_(parameter("mix_norm.weight")),
        q_(parameter("mixer.q.weight")),
        k_(parameter("mixer.k.weight")),
        v_(parameter("mixer.v.weight")),
        out_(parameter("mixer.out.weight")) {}

  at::Tensor Forward(const at::Tensor& input, BlockState* state) const override {
    const at::Tensor x = input + Attend(RmsNorm(input, norm_, config_.norm_eps), state);
    return x + feed_forward_(x);
  }

 private:
  at::Tensor Heads(const at::Tensor& u, const at::Tensor& weight) const {
    return Linear(u, weight).view({u.size(0), u.size(1), config_.heads, config_.HeadDim()});
  }

  at::Tensor Attend(const at::Tensor& u, BlockState* state) const {
    std::optional<at::Tensor> past_k, past_v;
    int64_t position = 0;
    if (state != nullptr && state->keys.defined()) {
      past_k = state->keys;
      past_v = state->values;
      position = state->keys.size(1);
    }
    const at::Tensor q = Rotate(Heads(u, q_), position, config_.rope_theta);
    const at::Tensor k = Rotate(Heads(u, k_), position, config_.rope_theta);
    const auto [y, keys, values] = Attention(q, k, Heads(u, v_), past_k, past_v);
    if (state != nullptr) {
      state->keys = keys.detach();
      state->values = values.detach();
      state->position += u.size(1);
    }
    return Linear(y.reshape(u.sizes()), out_);
  }

  const model::ModelConfig config_;
  FeedForward feed_forward_;
  at::Tensor norm_, q_, k_, v_, out_;
};

}  // namespace

std::unique_ptr<Block> MakeAttentionBlock(const model::ModelConfig& config, const Lookup& parameter) {
  return std::make_unique<AttentionBlock>(config, parameter);
}

}  // namespace lattice::nn
