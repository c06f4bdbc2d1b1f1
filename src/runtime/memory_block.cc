// The block around a recurrent memory; src/nn/memory_block.cc is the same for training.
#include <algorithm>

#include "base/functions.h"
#include "kernels/dense/pointwise.h"
#include "kernels/dense/short_conv.h"
#include "runtime/pass.h"
#include "runtime/recurrence.h"
#include "runtime/vectors.h"

namespace lattice::runtime {
namespace {

constexpr int64_t kTileRows = kernels::ShortConv<float>::kTileRows;

// As torch computes it: the identity beyond 20.
float Softplus(float x) { return x > 20 ? x : static_cast<float>(Log1p(Exp(x))); }

}  // namespace

template <typename Work, typename Done>
void Pass::OverTiles(const Work& work, const Done& done) {
  std::vector<std::pair<const SessionRows*, int64_t>> tiles;
  for (const SessionRows& segment : segments_) {
    for (int64_t tile = 0; tile * kTileRows < segment.count; ++tile) tiles.push_back({&segment, tile});
  }
  const auto count = static_cast<int64_t>(tiles.size());
  // In decoding a tile is one row, too little work to wake a thread for; grains have at least 8 rows.
  threads_.For(count, rows_ < 8 ? count : std::max<int64_t>(1, 8 * count / rows_),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   const auto& [segment, tile] = tiles[static_cast<size_t>(i)];
                   work(*segment, tile);
                   if (segment->count <= kTileRows) done(*segment);
                 }
               });
  for (const SessionRows& segment : segments_) {
    if (segment.count > kTileRows) done(segment);
  }
}

void Pass::Convolve(const ConvParts& conv, const float* x, const float* past, int64_t count, int64_t tile,
                    float* y) const {
  kernels::ShortConv<float> p;
  p.batch = 1;
  p.time = count;
  p.channels = conv.channels;
  p.width = config_.conv_width;
  p.weight = conv.weight.data();
  p.bias = conv.bias;
  p.x = x;
  p.past = past;
  kernels::ShortConvForward(p, y, tile, tile + 1);
}

void Pass::KeepTail(const SessionRows& segment, const float* x, int64_t channels, float* past) const {
  const int64_t keep = config_.conv_width - 1, fresh = std::min(keep, segment.count);
  std::copy(past + fresh * channels, past + keep * channels, past);
  const float* last = x + (segment.first + segment.count - fresh) * channels;
  std::copy_n(last, fresh * channels, past + (keep - fresh) * channels);
}

void Pass::AddGateProducts(const BlockParts& b, std::vector<Projection>& products) {
  for (size_t i = 0; i < b.gates.size(); ++i) {
    const GateParts& gate = b.gates[i];
    const bool low = gate.down.rows > 0;
    const WeightMatrix* weight = low ? &gate.down : &gate.weight;
    if (weight->rows > 0)
      products.push_back({weight, (low ? w_.gate_low : w_.gates[i]).Get(rows_ * weight->rows)});
  }
}

void Pass::MemoryBlock(const BlockParts& b, int64_t layer) {
  PreConvolve(b, layer);
  const int64_t width = config_.width;
  float* u = w_.u.Get(rows_ * width);
  std::vector<Projection> products = {{&b.qk, w_.qk.Get(rows_ * b.qk.rows)},
                                      {&b.v, w_.v.Get(rows_ * width)},
                                      {&b.gate, w_.gate.Get(rows_ * width)}};
  AddGateProducts(b, products);
  Project([&](int64_t first, int64_t last) { NormStream(b.mix_norm, first, last, u); }, u, rows_, products,
          {layer, kWithFeedForward, 1});
  ClearPending();
  MakeQueriesAndKeys(b, layer);
  MakeValues(b, layer);
  MakeGates(b);
  RunMemory(b, layer,
            {w_.k.Get(0), b.memory->step_scales_values ? w_.scaled_v.Get(0) : w_.v.Get(0), w_.gates});
  ProjectOutput(b);
}

void Pass::PreConvolve(const BlockParts& b, int64_t layer) {
  const int64_t width = config_.width;
  float *u = w_.u.Get(rows_ * width), *t = w_.t.Get(rows_ * width);
  OverRows(rows_, [&](int64_t first, int64_t last) { NormStream(b.pre_norm, first, last, u); });
  ClearPending();
  const auto past = [&](const SessionRows& s) { return LayerState(s, layer) + LayoutOf(layer).pre_conv; };
  OverTiles(
      [&](const SessionRows& s, int64_t tile) {
        Convolve(b.pre_conv, u + s.first * width, past(s), s.count, tile, t + s.first * width);
      },
      [&](const SessionRows& s) { KeepTail(s, u, width, past(s)); });
  AddToStream(t);
}

void Pass::MakeQueriesAndKeys(const BlockParts& b, int64_t layer) {
  const int64_t slots = config_.Slots(), width = config_.heads * slots;
  const float* qk = w_.qk.Get(0);
  float *q = w_.q.Get(rows_ * width), *k = w_.k.Get(rows_ * width);
  const auto past = [&](const SessionRows& s) { return LayerState(s, layer) + LayoutOf(layer).conv_qk; };
  const auto convolve = [&](const SessionRows& s, int64_t tile) {
    const int64_t first = s.first + tile * kTileRows;
    const int64_t count = std::min(kTileRows, s.count - tile * kTileRows);
    for (const auto& [conv, out] : {std::pair{&b.conv_q, q}, {&b.conv_k, k}}) {
      Convolve(*conv, qk + s.first * width, past(s), s.count, tile, out + s.first * width);
      float* rows = out + first * width;
      if (config_.conv_activation == model::Activation::kSilu) kernels::SiluInPlace(rows, count * width);
      NormalizeVectors(config_.qk_norm, count * config_.heads, slots, rows);
      for (int64_t t = 0; of_memory_.pairs > 0 && t < count; ++t)
        Rotate(of_memory_, rows + t * width, first + t, config_.heads, slots);
    }
  };
  OverTiles(convolve, [&](const SessionRows& s) { KeepTail(s, qk, width, past(s)); });
}

void Pass::MakeValues(const BlockParts& b, int64_t layer) {
  const int64_t width = config_.width;
  float* v = w_.v.Get(0);
  if (b.memory->conv_v) {
    float* t = w_.t.Get(rows_ * width);
    const auto past = [&](const SessionRows& s) { return LayerState(s, layer) + LayoutOf(layer).conv_v; };
    OverTiles(
        [&](const SessionRows& s, int64_t tile) {
          Convolve(b.conv_v, v + s.first * width, past(s), s.count, tile, t + s.first * width);
        },
        [&](const SessionRows& s) { KeepTail(s, v, width, past(s)); });
    if (config_.conv_activation == model::Activation::kSilu) kernels::SiluInPlace(t, rows_ * width);
    std::copy_n(t, rows_ * width, v);
  }
  if (config_.v_norm == model::VectorNorm::kNone) return;
  OverRows(rows_, [&](int64_t first, int64_t last) {
    NormalizeVectors(config_.v_norm, (last - first) * config_.heads, config_.HeadDim(), v + first * width);
  });
}

void Pass::SigmoidGate(const float* bias, float* gate) {
  const int64_t heads = config_.heads;
  OverRows(rows_, [&](int64_t first, int64_t last) {
    AddBias(bias, last - first, heads, gate + first * heads);
    for (int64_t i = first * heads; i < last * heads; ++i) gate[i] = Sigmoid(gate[i]);
  });
}

void Pass::DecayGate(const GateParts& parts, bool scales, float* gate) {
  const int64_t heads = config_.heads, total = rows_ * heads, dim = config_.HeadDim();
  AddBias(parts.bias, rows_, heads, gate);
  const float* v = w_.v.Get(0);
  float* scaled = scales ? w_.scaled_v.Get(rows_ * config_.width) : nullptr;
  for (int64_t i = 0; i < total; ++i) {
    const float step = Softplus(gate[i]);
    gate[i] = static_cast<float>(Exp(parts.decay[static_cast<size_t>(i % heads)] * step));
    for (int64_t d = 0; scaled != nullptr && d < dim; ++d) scaled[i * dim + d] = v[i * dim + d] * step;
  }
}

void Pass::SlotGate(const GateParts& parts, Scratch& gate) {
  const int64_t width = parts.weight.rows;
  float* slots = gate.Get(rows_ * width);
  Project(w_.gate_low.Get(0), rows_, {{&parts.weight, slots}});
  OverRows(rows_, [&](int64_t first, int64_t last) {
    AddBias(parts.bias, last - first, width, slots + first * width);
    kernels::SigmoidPower(slots + first * width, (last - first) * width,
                          static_cast<float>(kernels::kSlotGatePower));
  });
}

void Pass::MakeGates(const BlockParts& b) {
  using kernels::GateForm;
  for (size_t i = 0; i < b.gates.size(); ++i) {
    switch (b.memory->gates[i].form) {
      case GateForm::kNone:
        break;
      case GateForm::kSigmoid:
        SigmoidGate(b.gates[i].bias, w_.gates[i].Get(0));
        break;
      case GateForm::kLinear:
        AddBias(b.gates[i].bias, rows_, config_.heads, w_.gates[i].Get(0));
        break;
      case GateForm::kDecay:
        DecayGate(b.gates[i], b.memory->step_scales_values, w_.gates[i].Get(0));
        break;
      case GateForm::kSlotSigmoid:
        SlotGate(b.gates[i], w_.gates[i]);
        break;
    }
  }
}

void Pass::RunMemory(const BlockParts& b, int64_t layer, const MemoryTokens& tokens) {
  LayerSteps recurrence;
  recurrence.rule = &b.rule;
  recurrence.q = w_.q.Get(0);
  recurrence.k = tokens.k;
  recurrence.v = tokens.v;
  for (size_t i = 0; i < b.gates.size(); ++i)
    recurrence.gates[i] = b.gates[i].bias == nullptr ? nullptr : tokens.gates[i].Get(0);
  recurrence.y = w_.y.Get(rows_ * config_.width);
  recurrence.layer = layer;
  RunRecurrence(recurrence, LayoutOf(layer), segments_, threads_, w_.work_loop);
}

void Pass::ProjectOutput(const BlockParts& b) {
  const int64_t width = config_.width, dim = config_.HeadDim();
  float *y = w_.y.Get(0), *t = w_.t.Get(rows_ * width);
  const float *v = w_.v.Get(0), *gate = w_.gate.Get(0);
  const float eps = static_cast<float>(config_.norm_eps);
  const auto make = [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      float* out = y + row * width;
      for (int64_t i = 0; b.skip != nullptr && i < width; ++i) out[i] += b.skip[i / dim] * v[row * width + i];
      kernels::LayerNormRow(out, b.out_norm_weight, b.out_norm_bias, width, eps);
      kernels::GeluTimes(gate + row * width, width, out);
    }
  };
  Project(make, y, rows_, {{&b.out, t}});
  AddToStream(t);
}

}  // namespace lattice::runtime
