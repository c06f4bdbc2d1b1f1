#include "kernels/gated_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gated_norm.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hwy/highway.h"
#include "kernels/gelu-inl.h"
#include "kernels/isa.h"
#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVec = hn::Vec<F32>;

// The columns of a row, a vector at a time: full(i) for whole vectors, then one(i) for what is left.
template <class Full, class One>
HWY_INLINE void OverColumns(int64_t n, const Full& full, const One& one) {
  const int64_t N = hn::Lanes(F32());
  int64_t i = 0;
  for (; i + N <= n; i += N) full(i);
  for (; i < n; ++i) one(i);
}

struct Moments {
  float mean, scale;  // scale = 1 / sqrt(variance + eps)
};

HWY_INLINE Moments MomentsOf(const float* x, int64_t n, float eps) {
  const F32 d;
  auto sums = hn::Zero(d);
  float sum = 0;
  OverColumns(
      n, [&](int64_t i) HWY_ATTR { sums = hn::Add(sums, hn::LoadU(d, x + i)); },
      [&](int64_t i) { sum += x[i]; });
  const float mean = (sum + hn::GetLane(hn::SumOfLanes(d, sums))) / static_cast<float>(n);
  auto squares = hn::Zero(d);
  float square = 0;
  OverColumns(
      n,
      [&](int64_t i) HWY_ATTR {
        const auto off = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
        squares = hn::MulAdd(off, off, squares);
      },
      [&](int64_t i) { square += (x[i] - mean) * (x[i] - mean); });
  square += hn::GetLane(hn::SumOfLanes(d, squares));
  return {mean, 1 / std::sqrt(square / static_cast<float>(n) + eps)};
}

struct NormalScalar {
  float below, bell;
};
HWY_INLINE NormalScalar NormalAt(float x) {
  return {0.5f + 0.5f * std::erf(x * 0.70710678f), std::exp(-0.5f * x * x)};
}

template <typename S>
HWY_INLINE void ForwardRow(const GatedNorm<S>& p, int64_t at) {
  const F32 d;
  const float* x = p.x + at;
  const S* gate = p.gate + at;
  S* y = p.y + at;
  const Moments m = MomentsOf(x, p.width, p.eps);
  OverColumns(
      p.width,
      [&](int64_t i) HWY_ATTR {
        const auto n = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m.mean)), hn::Set(d, m.scale));
        const auto z = hn::MulAdd(n, hn::LoadU(d, p.weight + i), hn::LoadU(d, p.bias + i));
        const auto g = LoadAs(d, gate + i);
        StoreAs(hn::Mul(hn::Mul(g, NormalAt(d, g).below), z), d, y + i);
      },
      [&](int64_t i) {
        const float z = (x[i] - m.mean) * m.scale * p.weight[i] + p.bias[i], g = Get(gate[i]);
        Put(g * NormalAt(g).below * z, y + i);
      });
}

// 1 / sqrt(2 pi)
constexpr float kBellTop = 0.39894228f;

// With z = n w + b and f = gelu(gate): dgate = dy z f'(gate), dz = dy f, dw += dz n, db += dz, and with
// e = dz w: dx = scale (e - mean(e) - n mean(e n)). `e` has room for a row.
template <typename S>
HWY_INLINE void BackwardRow(const GatedNorm<S>& p, int64_t at, float* dw, float* db, float* e) {
  const F32 d;
  const float* x = p.x + at;
  const S *gate = p.gate + at, *dy = p.dy + at;
  S* dgate = p.dgate + at;
  float* dx = p.dx + at;
  const Moments m = MomentsOf(x, p.width, p.eps);
  auto sums = hn::Zero(d), alongs = hn::Zero(d);
  float sum = 0, along = 0;
  OverColumns(
      p.width,
      [&](int64_t i) HWY_ATTR {
        const auto n = hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m.mean)), hn::Set(d, m.scale));
        const auto w = hn::LoadU(d, p.weight + i);
        const auto g = LoadAs(d, gate + i), r = LoadAs(d, dy + i);
        const auto normal = NormalAt(d, g);
        const auto slope = hn::MulAdd(hn::Mul(g, hn::Set(d, kBellTop)), normal.bell, normal.below);
        StoreAs(hn::Mul(hn::Mul(r, hn::MulAdd(n, w, hn::LoadU(d, p.bias + i))), slope), d, dgate + i);
        const auto dz = hn::Mul(r, hn::Mul(g, normal.below));
        hn::StoreU(hn::MulAdd(dz, n, hn::LoadU(d, dw + i)), d, dw + i);
        hn::StoreU(hn::Add(dz, hn::LoadU(d, db + i)), d, db + i);
        const auto dn = hn::Mul(dz, w);
        hn::StoreU(dn, d, e + i);
        sums = hn::Add(sums, dn);
        alongs = hn::MulAdd(dn, n, alongs);
      },
      [&](int64_t i) {
        const float n = (x[i] - m.mean) * m.scale, g = Get(gate[i]), r = Get(dy[i]);
        const NormalScalar normal = NormalAt(g);
        Put(r * (n * p.weight[i] + p.bias[i]) * (normal.below + g * kBellTop * normal.bell), dgate + i);
        const float dz = r * g * normal.below;
        dw[i] += dz * n;
        db[i] += dz;
        e[i] = dz * p.weight[i];
        sum += e[i];
        along += e[i] * n;
      });
  const auto width = static_cast<float>(p.width);
  const float mean = (sum + hn::GetLane(hn::SumOfLanes(d, sums))) / width;
  const float slant = (along + hn::GetLane(hn::SumOfLanes(d, alongs))) / width * m.scale;
  OverColumns(
      p.width,
      [&](int64_t i) HWY_ATTR {
        const auto off = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, m.mean));
        const auto rest =
            hn::NegMulAdd(off, hn::Set(d, slant), hn::Sub(hn::LoadU(d, e + i), hn::Set(d, mean)));
        hn::StoreU(hn::Mul(rest, hn::Set(d, m.scale)), d, dx + i);
      },
      [&](int64_t i) { dx[i] = m.scale * (e[i] - mean - (x[i] - m.mean) * slant); });
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
