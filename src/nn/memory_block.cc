// The paper's block around any recurrent memory:
//   x += conv(norm(x));   x += (gelu(gate) * norm(memory(q, k, v))) W_out;   x += swiglu(norm(x))
#include <ATen/ATen.h>

#include "base/error.h"
#include "kernels/registry.h"
#include "nn/feed_forward.h"
#include "nn/gates.h"
#include "nn/layers.h"
#include "nn/projections.h"
#include "nn/recurrence.h"
#include "ops/gated_norm.h"
#include "ops/row_norm.h"
#include "ops/short_conv.h"
#include "ops/vectors.h"

namespace lattice::nn {
namespace {

struct Conv {
  at::Tensor weight, bias;

  // Reads and replaces `past`, the inputs before x, when there is a state to keep.
  at::Tensor operator()(const at::Tensor& x, at::Tensor* past) const {
    std::optional<at::Tensor> before;
    if (past != nullptr && past->defined()) before = *past;
    return CausalConv(x, weight, bias, before);
  }
  void Advance(const at::Tensor& x, BlockState* state, at::Tensor BlockState::*member) const {
    if (state == nullptr) return;
    at::Tensor& past = state->*member;
    std::optional<at::Tensor> before;
    if (past.defined()) before = past;
    past = NextPast(state->Left(x), weight.size(1), before);
  }
};

class MemoryBlock : public Block {
 public:
  MemoryBlock(const model::ModelConfig& config, const Lookup& parameter)
      : config_(config),
        memory_(kernels::FindMemory(config.mixer)),
        gates_(config, memory_, parameter),
        recurrence_(config, memory_, parameter),
        in_({parameter("mixer.qk.weight"), parameter("mixer.v.weight"), parameter("mixer.gate.weight")}),
        out_({parameter("mixer.out.weight")}),
        feed_forward_(config, parameter) {
    const auto conv = [&](const std::string& name) {
      return Conv{parameter(name + ".weight"), parameter(name + ".bias")};
    };
    rope_rates_ = RopeRateTensor(config, config.Slots() / 2);
    pre_norm_ = parameter("pre_norm.weight");
    pre_conv_ = conv("pre_conv");
    mix_norm_ = parameter("mix_norm.weight");
    conv_q_ = conv("mixer.conv_q");
    conv_k_ = conv("mixer.conv_k");
    if (memory_.conv_v) conv_v_ = conv("mixer.conv_v");
    if (memory_.skip) skip_ = parameter("mixer.skip");
    out_norm_weight_ = parameter("mixer.out_norm.weight");
    out_norm_bias_ = parameter("mixer.out_norm.bias");
  }

  MixerInput Before(const at::Tensor& input, BlockState* state) const override {
    at::Tensor past = state == nullptr ? at::Tensor() : state->pre_conv;
    const at::Tensor normed = RmsNorm(input, pre_norm_, config_.norm_eps);
    const at::Tensor local = pre_conv_(normed, &past);
    pre_conv_.Advance(normed, state, &BlockState::pre_conv);
    const auto [x, u] = AddRmsNorm(input, local, mix_norm_, config_.norm_eps, Bf16Scope::active());
    return {x, u};
  }

  at::Tensor Mix(const at::Tensor& u, BlockState* state) const override {
    const std::vector<at::Tensor> projected = in_(u);
    const auto [q, k] = RotatedQueriesAndKeys(projected[0], state);
    const at::Tensor v = Values(Wide(projected[1]), state);
    at::Tensor y = recurrence_(q, k, v, gates_.Forward(Wide(u)), state);
    if (memory_.skip) y = y + skip_.unsqueeze(-1) * v;
    if (state != nullptr) state->position += u.size(1);
    return out_.One(GatedLayerNorm(y.reshape(u.sizes()), projected[2], out_norm_weight_, out_norm_bias_,
                                   config_.norm_eps));
  }

  at::Tensor After(const at::Tensor& stream, const at::Tensor& mixed) const override {
    return feed_forward_(stream, mixed);
  }

 private:
  at::Tensor Heads(const at::Tensor& x, int64_t size) const {
    return x.view({x.size(0), x.size(1), config_.heads, size});
  }
  // q and k [B,T,H,M] from their common projection, which may be bfloat16.
  std::pair<at::Tensor, at::Tensor> RotatedQueriesAndKeys(const at::Tensor& projected,
                                                          BlockState* state) const {
    at::Tensor* past = state == nullptr ? nullptr : &state->conv_qk;
    std::optional<at::Tensor> before;
    if (past != nullptr && past->defined()) before = *past;
    const auto qk = QueriesAndKeys(projected, {conv_q_.weight, conv_q_.bias}, {conv_k_.weight, conv_k_.bias},
                                   config_.Slots(), config_.qk_norm, config_.conv_activation, before);
    conv_q_.Advance(Wide(projected), state, &BlockState::conv_qk);
    if (config_.rope_period == 0) return qk;
    const int64_t position = state == nullptr ? 0 : state->position;
    const at::Tensor positions = at::arange(position, position + projected.size(1));
    const auto rotate = [&](const at::Tensor& x) {
      return Rotate(x, positions, rope_rates_, config_.rope_period);
    };
    return {rotate(qk.first), rotate(qk.second)};
  }

  at::Tensor Values(at::Tensor v, BlockState* state) const {
    if (memory_.conv_v) {
      at::Tensor* past = state == nullptr ? nullptr : &state->conv_v;
      const at::Tensor mixed = Activate(conv_v_(v, past), config_.conv_activation);
      conv_v_.Advance(v, state, &BlockState::conv_v);
      v = mixed;
    }
    return NormalizeVectors(Heads(v, config_.HeadDim()), config_.v_norm);
  }

  const model::ModelConfig config_;
  const kernels::Memory& memory_;
  Gates gates_;
  Recurrence recurrence_;
  Projections in_, out_;
  FeedForward feed_forward_;
  at::Tensor rope_rates_, pre_norm_, mix_norm_, skip_, out_norm_weight_, out_norm_bias_;
  Conv pre_conv_, conv_q_, conv_k_, conv_v_;
};

}  // namespace

std::unique_ptr<Block> MakeMemoryBlock(const model::ModelConfig& config, const Lookup& parameter) {
  return std::make_unique<MemoryBlock>(config, parameter);
}

}  // namespace lattice::nn
