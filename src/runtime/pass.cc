// The forward pass: embedding, blocks, feed-forward layers and logits of a batch of rows. The kinds of block are
// in memory_block.cc, attention_block.cc and joined_block.cc.
#include "runtime/pass.h"

#include <algorithm>

#include "base/functions.h"
#include "kernels/dense/pointwise.h"
#include "kernels/dense/row_norm.h"
#include "kernels/dense/swiglu.h"
#include "model/rope.h"

namespace lattice::runtime {

Pass::Pass(const ModelParts& model, ThreadPool& threads, Workspace& workspace,
           std::span<const SessionRows> segments)
    : model_(model), config_(model.config), threads_(threads), w_(workspace), segments_(segments) {
  for (const SessionRows& segment : segments) rows_ += segment.count;
}

void Pass::Run(std::span<const int32_t> tokens) {
  const int64_t width = config_.width;
  float* x = w_.x.Get(rows_ * width);
  OverRows(rows_, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row)
      WidenRow(model_.embed, tokens[static_cast<size_t>(row)], x + row * width);
  });
  if (model_.rotates) of_attention_ = MakeRotations(config_.HeadDim() / 2, 0, w_.cos, w_.sin);
  if (config_.rope_period > 0)
    of_memory_ = MakeRotations(config_.Slots() / 2, config_.rope_period, w_.memory_cos, w_.memory_sin);
  for (size_t layer = 0; layer < model_.blocks.size(); ++layer) {
    const BlockParts& block = model_.blocks[layer];
    const auto number = static_cast<int64_t>(layer);
    if (block.memory->attention && block.config.window == 0) {
      AttentionBlock(block, number);
    } else if (block.config.block == model::BlockKind::kAttention) {
      JoinedBlock(block, number);
    } else {
      MemoryBlock(block, number);
    }
    FeedForward(block, static_cast<int64_t>(layer));
  }
  OverRows(rows_, [&](int64_t first, int64_t last) {
    kernels::AddTo(pending_ + first * width, (last - first) * width, x + first * width);
  });
  for (const SessionRows& segment : segments_) segment.state->position += segment.count;
}

void Pass::SumHidden() {
  const int64_t width = config_.width;
  for (const SessionRows& segment : segments_) {
    if (segment.hidden_sum == nullptr) continue;
    segment.hidden_sum->resize(static_cast<size_t>(width));
    float* u = w_.u.Get(rows_ * width);
    Norm(w_.x.Get(0), nullptr, model_.final_norm, segment.first, segment.first + segment.count, u);
    for (int64_t row = segment.first; row < segment.first + segment.count; ++row) {
      for (int64_t i = 0; i < width; ++i) (*segment.hidden_sum)[static_cast<size_t>(i)] += u[row * width + i];
    }
  }
}

void Pass::Logits(std::span<const int64_t> rows, float* out) {
  const int64_t count = static_cast<int64_t>(rows.size()), width = config_.width;
  if (count == 0) return;
  float* chosen = w_.t.Get(count * width);
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(w_.x.Get(0) + rows[static_cast<size_t>(i)] * width, width, chosen + i * width);
  float* u = w_.u.Get(count * width);
  Project([&](int64_t first, int64_t last) { Norm(chosen, nullptr, model_.final_norm, first, last, u); }, u,
          count, {{&model_.head, out}});
}

void Pass::FeedForward(const BlockParts& b, int64_t layer) {
  const int64_t hidden = config_.Hidden();
  float *u = w_.u.Get(rows_ * config_.width), *t = w_.t.Get(rows_ * config_.width);
  float *gate = w_.hidden_gate.Get(rows_ * hidden), *up = w_.hidden_up.Get(rows_ * hidden);
  Project([&](int64_t first, int64_t last) { NormStream(b.ffn_norm, first, last, u); }, u, rows_,
          {{&b.ffn_gate, gate}, {&b.ffn_up, up}}, {layer + 1, 0, kWithFirst});
  ClearPending();
  const auto activate = [&](int64_t first, int64_t last) {
    const int64_t at = first * hidden;
    kernels::SwiGluForward(gate + at, up + at, (last - first) * hidden, up + at);
  };
  Project(activate, up, rows_, {{&b.ffn_down, t}}, {layer + 1, kWithFirst, kWithFeedForward});
  AddToStream(t);
}

void Pass::Norm(float* x, const float* delta, const float* weight, int64_t first, int64_t last,
                float* y) const {
  const int64_t width = config_.width;
  kernels::RowNormForward<float> norm;
  norm.rows = last - first;
  norm.width = width;
  norm.share = 1 / static_cast<float>(width);
  norm.eps = static_cast<float>(config_.norm_eps);
  norm.x = x + first * width;
  if (delta != nullptr) {
    norm.delta.wide = delta + first * width;
    norm.sum = x + first * width;
  }
  norm.weight = weight;
  norm.y.wide = y + first * width;
  kernels::Run(norm, 0, norm.Tiles());
}

void Pass::NormStream(const float* weight, int64_t first, int64_t last, float* y) const {
  Norm(w_.x.Get(0), pending_, weight, first, last, y);
}

void Pass::StartProducts(const float* x, int64_t rows, std::span<const Projection> all) {
  // The format that x is converted to; float32 matrices among the others use x itself.
  const WeightMatrix* first = nullptr;
  for (const Projection& projection : all) {
    const WeightMatrix& w = *projection.w;
    if (w.rows > 0 && (first == nullptr || first->format == WeightFormat::kF32)) first = &w;
  }
  w_.activations.Reset(first->format, x, rows, first->cols);
}

void Pass::ShowInputs(const float* x, int64_t rows, std::span<const Projection> all) {
  std::vector<WeightMatrix> matrices;
  for (const Projection& projection : all) {
    if (projection.w->rows > 0) matrices.push_back(*projection.w);
  }
  w_.observer->OnProducts(matrices, x, rows);
}

kernels::FetchAhead::Region Pass::PartOf(const StateShare& share, int64_t i, int64_t parts) const {
  // With few sessions there is nothing to gain: decoding them is bound by reading weights already, and a
  // prompt keeps its state in the cache.
  const auto sessions = static_cast<int64_t>(segments_.size());
  if (share.layer < 0 || share.layer >= config_.layers || sessions < 4 || LayoutOf(share.layer).size == 0)
    return {};
  // Piece i fetches from session i * sessions / parts on. Products and recurrence share out their pieces in
  // the same order, so a thread fetches the states it will step: caches may be private to a core.
  const auto each = static_cast<double>(LayoutOf(share.layer).size * static_cast<int64_t>(sizeof(float)));
  const double first = static_cast<double>(i * sessions) / static_cast<double>(parts),
               last = static_cast<double>((i + 1) * sessions) / static_cast<double>(parts);
  const auto session = static_cast<int64_t>(first);
  const auto at = [&](double position) {
    const double inside = std::min(1.0, position - static_cast<double>(session));
    return static_cast<int64_t>((share.from + (share.to - share.from) * inside) * each);
  };
  const auto* state =
      reinterpret_cast<const char*>(LayerState(segments_[static_cast<size_t>(session)], share.layer));
  return {state + at(first), at(last) - at(first)};
}

void Pass::Multiply(std::span<const Projection> all, const StateShare& beside) {
  kernels::MatMul products[kMostProducts];
  int64_t ends[kMostProducts];
  int64_t count = 0, total = 0;
  for (const Projection& projection : all) {
    const WeightMatrix& w = *projection.w;
    if (w.rows == 0) continue;
    products[count] = w_.activations.Times(w, projection.y);
    ends[count++] = total += w.rows;
  }
  constexpr int64_t kPiece = kernels::kPanelRows;
  const int64_t pieces = (total + kPiece - 1) / kPiece;
  w_.work_loop.For(threads_, pieces, [&](int64_t piece) {
    const int64_t first = piece * kPiece, last = std::min(total, first + kPiece);
    int64_t begin = 0;
    for (int64_t i = 0; i < count && begin < last; begin = ends[i++]) {
      if (first >= ends[i]) continue;
      kernels::MatMul product = products[i];
      if (last <= ends[i]) product.also_prefetch = PartOf(beside, piece, pieces);
      kernels::MatMulRows(product, std::max(first, begin) - begin, std::min(last, ends[i]) - begin);
    }
  });
}

Pass::Rotations Pass::MakeRotations(int64_t pairs, int64_t period, Scratch& cos, Scratch& sin) const {
  const Rotations out = {pairs, cos.Get(rows_ * pairs), sin.Get(rows_ * pairs)};
  const std::vector<double> rates = model::RopeRates(config_, pairs);
  for (const SessionRows& segment : segments_) {
    for (int64_t t = 0; t < segment.count; ++t) {
      int64_t position = segment.state->position + t;
      if (period > 0) position %= period;
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(position) * rates[static_cast<size_t>(i)];
        const auto [sine, cosine] = SineAndCosine(angle);
        out.cos[(segment.first + t) * pairs + i] = static_cast<float>(cosine);
        out.sin[(segment.first + t) * pairs + i] = static_cast<float>(sine);
      }
    }
  }
  return out;
}

void Pass::Rotate(const Rotations& by, float* x, int64_t row, int64_t heads, int64_t width) const {
  const float *cos = by.cos + row * by.pairs, *sin = by.sin + row * by.pairs;
  for (int64_t head = 0; head < heads; ++head, x += width) {
    for (int64_t i = 0; i < by.pairs; ++i) {
      const float a = x[i], b = x[i + by.pairs];
      x[i] = a * cos[i] - b * sin[i];
      x[i + by.pairs] = a * sin[i] + b * cos[i];
    }
  }
}

}  // namespace lattice::runtime
