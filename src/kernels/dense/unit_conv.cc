// Queries and keys: two short convolutions of one input, each normalised to length 1, and their gradients.
#include "kernels/dense/unit_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/unit_conv.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hwy/highway.h"
#include "kernels/dense/conv_row-inl.h"
#include "kernels/dense/dot-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// out = a x + b y; out may be x or y.
HWY_INLINE void Blend(float a, const float* x, float b, const float* y, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto term = hn::Mul(hn::Set(d, b), io.Load(y + i));
    io.Store(hn::MulAdd(hn::Set(d, a), io.Load(x + i), term), out + i);
  });
}

template <typename S>
HWY_INLINE void Forward(const UnitConv<S>& p, int64_t first, int64_t last) {
  for (int64_t tile = first; tile < last; ++tile) {
    const auto [b, begin, end] = RangeOf(p, tile);
    ConvWindow rows(p, b);
    for (int64_t t = begin; t < end; ++t) {
      const S* const* under = rows.At(t);
      for (int64_t f = 0; f < p.kFilters; ++f) {
        float* y = p.y[f] + (b * p.time + t) * p.channels;
        ConvRow(under, p.width, p.weight[f], p.bias[f], p.channels, y);
        for (int64_t c = 0; c < p.channels; c += p.size) {
          const float r = 1 / std::sqrt(Dot(y + c, y + c, p.size) + p.eps);
          Blend(r, y + c, 0.0f, y + c, p.size, y + c);
        }
      }
    }
  }
}

// dc = r (dy - r^2 <dy, c> c) for every vector: the gradient of filter f's convolution c at one row,
// recomputed from its window.
template <typename S>
HWY_INLINE void UnitGradient(const UnitConv<S>& p, int64_t f, int64_t at, const S* const* under, float* dc) {
  const float* dy = p.dy[f] + at;
  ConvRow(under, p.width, p.weight[f], p.bias[f], p.channels, dc);
  for (int64_t c = 0; c < p.channels; c += p.size) {
    const float r = 1 / std::sqrt(Dot(dc + c, dc + c, p.size) + p.eps);
    const float along = -r * r * r * Dot(dc + c, dy + c, p.size);
    Blend(along, dc + c, r, dy + c, p.size, dc + c);
  }
}

// dx of one row: the sum of weight_f[W-1-later, c] dc_f[later, c] over both filters and `count` rows, this
// one and those after it.
template <typename S>
HWY_INLINE void InputRow(const UnitConv<S>& p, const float* const* dc, int64_t count, S* dx) {
  const hn::ScalableTag<float> d;
  const int64_t C = p.channels;
  OverColumns(d, C, [&](int64_t c, auto io) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (int64_t f = 0; f < p.kFilters; ++f) {
      for (int64_t later = 0; later < count; ++later) {
        const auto w = io.Load(p.weight[f] + (p.width - 1 - later) * C + c);
        sum = hn::MulAdd(w, io.Load(dc[f] + later * C + c), sum);
      }
    }
    io.Store(sum, dx + c);
  });
}

template <typename S>
HWY_INLINE void BackwardTile(const UnitConv<S>& p, int64_t tile, std::vector<float>& scratch) {
  const int64_t C = p.channels, W = p.width, room = (p.kTileRows + W - 1) * C;
  const auto [b, begin, end] = RangeOf(p, tile);
  const int64_t reach = std::min(p.time, end + W - 1);
  ConvWindow rows(p, b);
  float* sums = p.partial + tile * p.kFilters * (W + 1) * C;
  std::fill(sums, sums + p.kFilters * (W + 1) * C, 0.0f);
  for (int64_t t = begin; t < reach; ++t) {
    const S* const* under = rows.At(t);
    for (int64_t f = 0; f < p.kFilters; ++f) {
      float* dc = scratch.data() + f * room + (t - begin) * C;
      UnitGradient(p, f, (b * p.time + t) * C, under, dc);
      // The rows after the tile only contribute to its dx.
      if (t >= end) continue;
      float* own = sums + f * (W + 1) * C;
      AddRow(dc, C, own + W * C);
      for (int64_t j = 0; j < W; ++j) {
        if (under[j] != nullptr) MulRows<true>(dc, under[j], C, own + j * C);
      }
    }
  }
  for (int64_t t = begin; t < end; ++t) {
    const float* dc[] = {scratch.data() + (t - begin) * C, scratch.data() + room + (t - begin) * C};
    InputRow(p, dc, std::min(W, reach - t), p.dx + (b * p.time + t) * C);
  }
}

template <typename S>
HWY_INLINE void Backward(const UnitConv<S>& p, int64_t first, int64_t last) {
  std::vector<float> scratch(static_cast<size_t>(p.kFilters * (p.kTileRows + p.width - 1) * p.channels));
  for (int64_t tile = first; tile < last; ++tile) BackwardTile(p, tile, scratch);
}

void UnitForwardF32(const UnitConv<float>& p, int64_t a, int64_t b) { Forward(p, a, b); }
void UnitForwardBf16(const UnitConv<uint16_t>& p, int64_t a, int64_t b) { Forward(p, a, b); }
void UnitBackwardF32(const UnitConv<float>& p, int64_t a, int64_t b) { Backward(p, a, b); }
void UnitBackwardBf16(const UnitConv<uint16_t>& p, int64_t a, int64_t b) { Backward(p, a, b); }

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(UnitForwardF32);
HWY_EXPORT(UnitForwardBf16);
HWY_EXPORT(UnitBackwardF32);
HWY_EXPORT(UnitBackwardBf16);

void UnitConvForward(const UnitConv<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(UnitForwardF32)(p, first, last);
}
void UnitConvForward(const UnitConv<uint16_t>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(UnitForwardBf16)(p, first, last);
}
void UnitConvBackward(const UnitConv<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(UnitBackwardF32)(p, first, last);
}
void UnitConvBackward(const UnitConv<uint16_t>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(UnitBackwardBf16)(p, first, last);
}

}  // namespace lattice::kernels
#endif
