// LayerNorm times a GELU gate, row by row: two passes for mean and variance, one for the result.
#include "kernels/dense/gated_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/gated_norm.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/dense/gelu-inl.h"
#include "kernels/isa.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVec = hn::Vec<F32>;

struct Moments {
  float mean, scale;  // scale = 1 / sqrt(variance + eps)
};

HWY_INLINE Moments MomentsOf(const float* x, int64_t n, float eps) {
  const F32 d;
  auto sums = hn::Zero(d);
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR { sums = hn::Add(sums, io.Load(x + i)); });
  const float mean = SumLanes(d, sums) / static_cast<float>(n);
  auto squares = hn::Zero(d);
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto off = io.Or(hn::Sub(io.Load(x + i), hn::Set(d, mean)), 0);
    squares = hn::MulAdd(off, off, squares);
  });
  const float variance = SumLanes(d, squares) / static_cast<float>(n);
  return {mean, 1 / std::sqrt(variance + eps)};
}

template <typename S>
HWY_INLINE void ForwardRow(const GatedNorm<S>& p, int64_t at) {
  const F32 d;
  const float* x = p.x + at;
  const S* gate = p.gate + at;
  S* y = p.y + at;
  const Moments m = MomentsOf(x, p.width, p.eps);
  OverColumns(d, p.width, [&](int64_t i, auto io) HWY_ATTR {
    const auto n = hn::Mul(hn::Sub(io.Load(x + i), hn::Set(d, m.mean)), hn::Set(d, m.scale));
    const auto z = hn::MulAdd(n, io.Load(p.weight + i), io.Load(p.bias + i));
    const auto g = io.Load(gate + i);
    io.Store(hn::Mul(hn::Mul(g, NormalAt(d, g).cdf), z), y + i);
  });
}

constexpr float kInvSqrt2Pi = 0.39894228f;

// With z = n w + b and f = gelu(gate):
//   dgate = dy z f'(gate)    dz = dy f    dw += dz n    db += dz
//   dx = scale (e - mean(e) - n mean(e n)),  e = dz w
// `e` is scratch for a row. In the padding of the last vector gate and dy are zeros, and so is everything
// that is summed.
template <typename S>
HWY_INLINE void BackwardRow(const GatedNorm<S>& p, int64_t at, float* dw, float* db, float* e) {
  const F32 d;
  const float* x = p.x + at;
  const S *gate = p.gate + at, *dy = p.dy + at;
  S* dgate = p.dgate + at;
  float* dx = p.dx + at;
  const Moments m = MomentsOf(x, p.width, p.eps);
  auto sums = hn::Zero(d), alongs = hn::Zero(d);
  OverColumns(d, p.width, [&](int64_t i, auto io) HWY_ATTR {
    const auto n = hn::Mul(hn::Sub(io.Load(x + i), hn::Set(d, m.mean)), hn::Set(d, m.scale));
    const auto w = io.Load(p.weight + i);
    const auto g = io.Load(gate + i), r = io.Load(dy + i);
    const auto normal = NormalAt(d, g);
    const auto slope = hn::MulAdd(hn::Mul(g, hn::Set(d, kInvSqrt2Pi)), normal.gauss, normal.cdf);
    io.Store(hn::Mul(hn::Mul(r, hn::MulAdd(n, w, io.Load(p.bias + i))), slope), dgate + i);
    const auto dz = hn::Mul(r, hn::Mul(g, normal.cdf));
    io.Store(hn::MulAdd(dz, n, io.Load(dw + i)), dw + i);
    io.Store(hn::Add(dz, io.Load(db + i)), db + i);
    const auto dn = hn::Mul(dz, w);
    io.Store(dn, e + i);
    sums = hn::Add(sums, dn);
    alongs = hn::MulAdd(dn, n, alongs);
  });
  const auto width = static_cast<float>(p.width);
  const float mean = SumLanes(d, sums) / width;
  const float along = SumLanes(d, alongs) / width * m.scale;  // mean(e n) scale
  OverColumns(d, p.width, [&](int64_t i, auto io) HWY_ATTR {
    const auto off = hn::Sub(io.Load(x + i), hn::Set(d, m.mean));
    const auto rest = hn::NegMulAdd(off, hn::Set(d, along), hn::Sub(io.Load(e + i), hn::Set(d, mean)));
    io.Store(hn::Mul(rest, hn::Set(d, m.scale)), dx + i);
  });
}

template <typename S>
HWY_INLINE void Forward(const GatedNorm<S>& p, int64_t first, int64_t last) {
  const int64_t end = std::min(p.rows, last * p.kTileRows);
  for (int64_t row = first * p.kTileRows; row < end; ++row) ForwardRow(p, row * p.width);
}

template <typename S>
HWY_INLINE void Backward(const GatedNorm<S>& p, int64_t first, int64_t last) {
  std::vector<float> e(static_cast<size_t>(p.width));
  for (int64_t tile = first; tile < last; ++tile) {
    float* sums = p.partial + tile * 2 * p.width;
    std::fill(sums, sums + 2 * p.width, 0.0f);
    const int64_t end = std::min(p.rows, (tile + 1) * p.kTileRows);
    for (int64_t row = tile * p.kTileRows; row < end; ++row) {
      BackwardRow(p, row * p.width, sums, sums + p.width, e.data());
    }
  }
}

void GatedForwardF32(const GatedNorm<float>& p, int64_t a, int64_t b) { Forward(p, a, b); }
void GatedForwardBf16(const GatedNorm<uint16_t>& p, int64_t a, int64_t b) { Forward(p, a, b); }
void GatedBackwardF32(const GatedNorm<float>& p, int64_t a, int64_t b) { Backward(p, a, b); }
void GatedBackwardBf16(const GatedNorm<uint16_t>& p, int64_t a, int64_t b) { Backward(p, a, b); }

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(GatedForwardF32);
HWY_EXPORT(GatedForwardBf16);
HWY_EXPORT(GatedBackwardF32);
HWY_EXPORT(GatedBackwardBf16);

void GatedNormForward(const GatedNorm<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(GatedForwardF32)(p, first, last);
}
void GatedNormForward(const GatedNorm<uint16_t>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(GatedForwardBf16)(p, first, last);
}
void GatedNormBackward(const GatedNorm<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(GatedBackwardF32)(p, first, last);
}
void GatedNormBackward(const GatedNorm<uint16_t>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(GatedBackwardBf16)(p, first, last);
}

}  // namespace lattice::kernels
#endif
