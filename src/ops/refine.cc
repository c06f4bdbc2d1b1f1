#include "ops/refine.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace lattice {
namespace {

using at::Tensor;

// The most that a sweep may still change of a slot, relative to its length, for a head to be trusted.
constexpr double kChangeLimit = 0.5;
// The most that any sweep on the way may change: beyond it, gradients through the sweeps overflow.
constexpr double kWildLimit = 10;
// How far slots may be from the length the exact recurrence gives them, relative to it.
constexpr double kDriftLimit = 0.25;
// Sweeps that a tolerance is given before the chunk is halved.
constexpr int64_t kPatience = 8;

Tensor Worst(const Tensor& x) { return x.flatten(1).amax(1); }

// [N]: the largest change of a slot by one token between two sweeps, relative to the slot's length.
Tensor Change(const ChunkTerms& a, const ChunkTerms& b, const Tensor& s) {
  const auto row = [](const Tensor& x) { return x.square().sum(-1, true).sqrt(); };
  const Tensor writes = (a.W - b.W).abs() * row(a.H) + b.W.abs() * row(a.H - b.H);
  return Worst((a.G - b.G).abs() + writes / s.unsqueeze(-2));
}

// [N]: how far the state's slots are from the lengths they should have.
Tensor Drift(const ChunkForm& form, const ChunkTokens& x, const Tensor& S, const ChunkTerms& terms,
             const Tensor& end) {
  const Tensor expected = ExpectedSquares(form, x, S, terms).sqrt();
  return Worst((SlotLengths(end) / expected - 1).abs());
}

struct Swept {
  Tensor y, state;
  Tensor settled;  // [N], bool
};

Swept Sweep(const ChunkForm& form, const ChunkTokens& x, const Tensor& S) {
  const int64_t most = std::min(form.sweeps, x.k.size(-2));
  const double limit = form.tolerance.value_or(kChangeLimit);
  ChunkTerms terms = FrozenTerms(form, x, S);
  Tensor change, wildest;
  {
    const Tensor s = SlotLengths(S).detach();
    for (int64_t sweep = 1; sweep < most; ++sweep) {
      ChunkTerms next = NextTerms(form, x, S, terms);
      {
        at::NoGradGuard guard;
        change = Change(next, terms, s);
        wildest = wildest.defined() ? at::maximum(wildest, change) : change;
      }
      terms = std::move(next);
      if (!form.tolerance.has_value()) continue;
      if (sweep >= kPatience || (change <= limit).all().item<bool>()) break;
    }
  }
  auto [y, state] = ApplyTerms(form, x, S, terms);
  at::NoGradGuard guard;
  Tensor settled = Worst(y.abs()).isfinite() & (Drift(form, x, S, terms, state) <= kDriftLimit);
  if (change.defined()) settled = settled & (change <= limit) & (wildest <= kWildLimit);
  return {y, state, settled};
}

// Two chunks of half the length, one after the other.
std::pair<Tensor, Tensor> RefineHalves(const ChunkForm& form, const ChunkTokens& x, const Tensor& S) {
  const int64_t half = x.k.size(-2) / 2;
  const auto part = [&](int64_t first) {
    return x.Map([&](const Tensor& t) { return t.narrow(-2, first, half); });
  };
  const auto [y_left, middle] = RefineChunk(form, part(0), S);
  const auto [y_right, end] = RefineChunk(form, part(half), middle);
  return {at::cat({y_left, y_right}, -2), end};
}

}  // namespace

std::pair<Tensor, Tensor> RefineChunk(const ChunkForm& form, const ChunkTokens& x, const Tensor& S) {
  if (x.k.size(-2) == 1) return ApplyTerms(form, x, S, FrozenTerms(form, x, S));
  const Swept swept = Sweep(form, x, S);
  if (swept.settled.all().item<bool>()) return {swept.y, swept.state};
  // Unsettled heads must not be in the graph of the result, not even with weight zero: they may hold NaN.
  const Tensor good = swept.settled.nonzero().flatten(),
               bad = swept.settled.logical_not().nonzero().flatten();
  const auto of = [&](const Tensor& rows) {
    return x.Map([&](const Tensor& t) { return t.index_select(0, rows); });
  };
  const auto halves = RefineHalves(form, of(bad), S.index_select(0, bad));
  if (good.numel() == 0) return halves;
  const auto rest = RefineChunk(form, of(good), S.index_select(0, good));
  const Tensor order = at::cat({good, bad}).argsort();
  return {at::cat({rest.first, halves.first}).index_select(0, order),
          at::cat({rest.second, halves.second}).index_select(0, order)};
}

}  // namespace lattice
