// Attention over a window and a memory of what has left it, with the projections of an attention layer:
//   q, k = rotated W_q u, W_k u;   v = W_v u
//   y = (1 - s) attention(q; window and sinks) + s a * memory(q / sqrt(D); unit k, v of older tokens)
//   x += (y * 2 sigmoid(gate)) W_out;   x += swiglu(norm(x))
// The share s = sigmoid(u W + b), one number a head, is 0 until a token has left the window: up to there the layer is
// exactly that of a Transformer. Without a window, y is a * memory(...) and every token enters the memory at once.
#include <ATen/ATen.h>

#include <cmath>

#include "kernels/registry.h"
#include "nn/feed_forward.h"
#include "nn/gates.h"
#include "nn/layers.h"
#include "nn/projections.h"
#include "nn/recurrence.h"
#include "nn/window.h"
#include "ops/row_norm.h"
#include "ops/vectors.h"

namespace lattice::nn {
namespace {

std::vector<at::Tensor> InputWeights(const model::ModelConfig& config, const kernels::Memory& memory,
                                     const Lookup& parameter) {
  std::vector<at::Tensor> weights = {parameter("mixer.q.weight"), parameter("mixer.k.weight"),
                                     parameter("mixer.v.weight")};
  if (!memory.attention && config.output_gate == model::OutputGate::kSigmoid)
    weights.push_back(parameter("mixer.gate.weight"));
  return weights;
}

class JoinedBlock : public Block {
 public:
  JoinedBlock(const model::ModelConfig& config, const Lookup& parameter)
      : config_(config),
        memory_(kernels::FindMemory(config.mixer)),
        window_{config.window, config.sinks},
        gates_(config, memory_, parameter),
        recurrence_(config, memory_, parameter),
        in_(InputWeights(config, memory_, parameter)),
        out_({parameter("mixer.out.weight")}),
        feed_forward_(config, parameter),
        norm_(parameter("mix_norm.weight")),
        rope_rates_(RopeRateTensor(config, config.HeadDim() / 2)) {
    if (memory_.attention) return;
    amplitude_ = parameter("mixer.amplitude");
    if (window_.size == 0) return;
    share_weight_ = parameter("mixer.share.weight");
    share_bias_ = parameter("mixer.share.bias");
  }

  MixerInput Before(const at::Tensor& x, BlockState*) const override {
    return {x, RmsNorm(x, norm_, config_.norm_eps, Bf16Scope::active())};
  }
  at::Tensor After(const at::Tensor& stream, const at::Tensor& mixed) const override {
    return feed_forward_(stream, mixed);
  }

  at::Tensor Mix(const at::Tensor& u, BlockState* state) const override {
    const std::vector<at::Tensor> projected = in_(u);
    const int64_t position = state == nullptr ? 0 : state->position;
    const at::Tensor positions = at::arange(position, position + u.size(1), at::kLong);
    Tokens now;
    now.positions = positions;
    now.q = Rotate(Heads(projected[0]), positions, rope_rates_);
    now.keys = Rotate(Heads(projected[1]), positions, rope_rates_);
    now.values = Heads(projected[2]);
    if (!memory_.attention) now.gates = gates_.Forward(Wide(u));
    at::Tensor y = window_.size > 0 ? BesideWindow(Wide(u), now, state) : Read(now, state);
    if (state != nullptr) state->position += u.size(1);
    if (projected.size() > 3) y = y * (2 * Heads(projected[3]).sigmoid());
    return out_.One(y.reshape(u.sizes()));
  }

 private:
  // Tokens of this call, or with those that a window has kept before them.
  struct Tokens {
    at::Tensor positions;     // int64 [T]
    at::Tensor q;             // [B,T,H,D]
    at::Tensor keys, values;  // [B,T,kv_heads,D]
    GateValues gates;
  };

  at::Tensor Heads(const at::Tensor& x) const {
    return Wide(x).view({x.size(0), x.size(1), -1, config_.HeadDim()});
  }
  // Keys or values for every head of the queries.
  at::Tensor ForHeads(const at::Tensor& x) const {
    const int64_t group = config_.heads / config_.KvHeads();
    return group == 1 ? x : at::repeat_interleave(x, group, 2);
  }

  // What is read from the memory after the tokens whose keys, values and gates are given.
  at::Tensor Read(const Tokens& t, BlockState* state) const {
    const at::Tensor q = t.q * (1 / std::sqrt(static_cast<double>(config_.HeadDim())));
    const at::Tensor k = NormalizeVectors(t.keys, model::VectorNorm::kL2);
    return recurrence_(q, ForHeads(k), ForHeads(t.values), t.gates, state) * amplitude_;
  }

  // The tokens that the window holds before this call, then those of this call.
  Tokens WithCached(const Tokens& now, const BlockState* state) const {
    if (state == nullptr || !state->keys.defined()) return now;
    Tokens all = now;
    all.positions = at::cat({window_.Cached(state->position), now.positions});
    all.keys = at::cat({state->keys, now.keys}, 1);
    all.values = at::cat({state->values, now.values}, 1);
    for (size_t i = 0; i < all.gates.gates.size(); ++i) {
      std::optional<at::Tensor>& gate = all.gates.gates[i];
      if (gate.has_value()) gate = at::cat({state->waiting[i], *gate}, 1);
    }
    return all;
  }

  void Keep(const Tokens& all, int64_t next, BlockState* state) const {
    const at::Tensor index = Find(window_.Cached(next), all.positions).index;
    const auto keep = [&](const at::Tensor& x) { return state->Left(x).index_select(1, index); };
    state->keys = keep(all.keys);
    state->values = keep(all.values);
    state->waiting.clear();
    for (const std::optional<at::Tensor>& gate : all.gates.gates)
      state->waiting.push_back(gate.has_value() ? keep(*gate) : at::Tensor());
  }

  // For every token of this call the one that leaves the window; nothing is written where none does.
  Tokens Leaving(const Tokens& all, const Tokens& now) const {
    const Places places =
        Find((now.positions - window_.size).masked_fill(now.positions < window_.size + window_.sinks, -1),
             all.positions);
    const at::Tensor absent = places.found.logical_not();
    const auto at = [&](const at::Tensor& x, double idle) {
      std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
      shape[1] = -1;
      return x.index_select(1, places.index).masked_fill(absent.view(shape), idle);
    };
    Tokens out = now;
    out.keys = at(all.keys, 0);
    out.values = at(all.values, 0);
    for (size_t i = 0; i < out.gates.gates.size(); ++i) {
      std::optional<at::Tensor>& gate = out.gates.gates[i];
      if (gate.has_value()) gate = at(*all.gates.gates[i], kernels::IdleValue(memory_.gates[i]));
    }
    return out;
  }

  at::Tensor BesideWindow(const at::Tensor& u, const Tokens& now, BlockState* state) const {
    const Tokens all = WithCached(now, state);
    const at::Tensor near = window_.Attend(now.q, now.positions, {all.positions, all.keys, all.values});
    const int64_t next = (state == nullptr ? 0 : state->position) + u.size(1);
    if (state != nullptr) Keep(all, next, state);
    if (memory_.attention) return near;
    const at::Tensor far = Read(Leaving(all, now), state);
    const at::Tensor ready =
        (now.positions >= window_.size + window_.sinks).to(u.scalar_type()).view({1, -1, 1});
    const at::Tensor share = (at::linear(u, share_weight_, share_bias_).sigmoid() * ready).unsqueeze(-1);
    return near + share * (far - near);
  }

  const model::ModelConfig config_;
  const kernels::Memory& memory_;
  const Window window_;
  Gates gates_;
  Recurrence recurrence_;
  Projections in_, out_;
  FeedForward feed_forward_;
  at::Tensor norm_, rope_rates_, amplitude_, share_weight_, share_bias_;
};

}  // namespace

std::unique_ptr<Block> MakeJoinedBlock(const model::ModelConfig& config, const Lookup& parameter) {
  return std::make_unique<JoinedBlock>(config, parameter);
}

}  // namespace lattice::nn
