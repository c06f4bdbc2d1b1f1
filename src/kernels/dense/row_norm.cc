// RMSNorm and normalisation to length 1, row by row, with the residual addition fused in.
#include "kernels/dense/row_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/row_norm.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/isa.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The sum of a b w over a row; a null w stands for ones.
template <typename T, typename S>
HWY_INLINE T Dot3(const T* a, const S* b, const T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    auto y = io.Load(b + i);
    if (w != nullptr) y = hn::Mul(y, io.Load(w + i));
    sum = hn::MulAdd(io.Load(a + i), y, sum);
  });
  return SumLanes(d, sum);
}

// out = x + y
template <typename T, typename S>
HWY_INLINE void Sum(const T* x, const S* y, int64_t n, T* out) {
  OverColumns(hn::ScalableTag<T>(), n, [&](int64_t i, auto io) HWY_ATTR {
    io.Store(hn::Add(io.Load(x + i), io.Load(y + i)), out + i);
  });
}

// out = a x w over a row; a null w stands for ones.
template <typename T, typename S>
HWY_INLINE void Scale(T a, const T* x, const T* w, int64_t n, S* out) {
  const hn::ScalableTag<T> d;
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    auto y = hn::Mul(hn::Set(d, a), io.Load(x + i));
    if (w != nullptr) y = hn::Mul(y, io.Load(w + i));
    io.Store(y, out + i);
  });
}

// out += a x y
template <typename T, typename S>
HWY_INLINE void AddScaledProduct(T a, const T* x, const S* y, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto ax = hn::Mul(hn::Set(d, a), io.Load(x + i));
    io.Store(hn::MulAdd(ax, io.Load(y + i), io.Load(out + i)), out + i);
  });
}

// r = 1 / sqrt(share |x|^2 + eps)
template <typename T>
HWY_INLINE T InverseLength(const RowNorm<T>& p, const T* x) {
  return T(1) / std::sqrt(p.share * Dot3<T>(x, x, nullptr, p.width) + p.eps);
}

template <typename T>
HWY_INLINE void ForwardRow(const RowNormForward<T>& p, int64_t row) {
  const int64_t n = p.width, at = row * n;
  const T* x = p.x + at;
  if (p.sum != nullptr) {
    if constexpr (std::is_same_v<T, float>) {
      if (p.delta.bf16 != nullptr) Sum(x, p.delta.bf16 + at, n, p.sum + at);
    }
    if (p.delta.wide != nullptr) Sum(x, p.delta.wide + at, n, p.sum + at);
    x = p.sum + at;
  }
  const T r = InverseLength(p, x);
  if constexpr (std::is_same_v<T, float>) {
    if (p.y.bf16 != nullptr) Scale(r, x, p.weight, n, p.y.bf16 + at);
  }
  if (p.y.wide != nullptr) Scale(r, x, p.weight, n, p.y.wide + at);
}

// dx = along x + r g w + dsum
template <typename T, typename S>
HWY_INLINE void Combine(const RowNormBackward<T>& p, T along, T r, const S* g, int64_t at) {
  const hn::ScalableTag<T> d;
  const T *x = p.sum + at, *w = p.weight, *more = p.dsum == nullptr ? nullptr : p.dsum + at;
  T* out = p.dx + at;
  uint16_t* rounded = p.dx_bf16 == nullptr ? nullptr : p.dx_bf16 + at;
  OverColumns(d, p.width, [&](int64_t i, auto io) HWY_ATTR {
    auto term = hn::Mul(hn::Set(d, r), io.Load(g + i));
    if (w != nullptr) term = hn::Mul(term, io.Load(w + i));
    auto y = hn::MulAdd(hn::Set(d, along), io.Load(x + i), term);
    if (more != nullptr) y = hn::Add(y, io.Load(more + i));
    io.Store(y, out + i);
    if constexpr (std::is_same_v<T, float>) {
      if (rounded != nullptr) io.Store(y, rounded + i);
    }
  });
}

// With g = dy w: dx = r g - (share r^3 <g, x>) x, dw += r x dy.
template <typename T, typename S>
HWY_INLINE void BackwardRow(const RowNormBackward<T>& p, const S* dy, int64_t at, T* dw) {
  const T* x = p.sum + at;
  const T r = InverseLength(p, x);
  const T along = -p.share * r * r * r * Dot3(x, dy, p.weight, p.width);
  if (dw != nullptr) AddScaledProduct(r, x, dy, p.width, dw);
  Combine(p, along, r, dy, at);
}

template <typename T>
HWY_INLINE void Forward(const RowNormForward<T>& p, int64_t first, int64_t last) {
  const int64_t end = std::min(p.rows, last * p.kTileRows);
  for (int64_t row = first * p.kTileRows; row < end; ++row) ForwardRow(p, row);
}

template <typename T>
HWY_INLINE void Backward(const RowNormBackward<T>& p, int64_t first, int64_t last) {
  for (int64_t tile = first; tile < last; ++tile) {
    T* dw = p.weight == nullptr ? nullptr : p.partial + tile * p.width;
    if (dw != nullptr) std::fill(dw, dw + p.width, T(0));
    const int64_t end = std::min(p.rows, (tile + 1) * p.kTileRows);
    for (int64_t row = tile * p.kTileRows; row < end; ++row) {
      const int64_t at = row * p.width;
      if constexpr (std::is_same_v<T, float>) {
        if (p.dy.bf16 != nullptr) {
          BackwardRow(p, p.dy.bf16 + at, at, dw);
          continue;
        }
      }
      BackwardRow(p, p.dy.wide + at, at, dw);
    }
  }
}

void ForwardF32(const RowNormForward<float>& p, int64_t a, int64_t b) { Forward(p, a, b); }
void BackwardF32(const RowNormBackward<float>& p, int64_t a, int64_t b) { Backward(p, a, b); }
#if HWY_HAVE_FLOAT64  // not in WebAssembly
void ForwardF64(const RowNormForward<double>& p, int64_t a, int64_t b) { Forward(p, a, b); }
void BackwardF64(const RowNormBackward<double>& p, int64_t a, int64_t b) { Backward(p, a, b); }
#endif

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(BackwardF32);

void Run(const RowNormForward<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF32)(p, first, last);
}
void Run(const RowNormBackward<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF32)(p, first, last);
}

#if HWY_HAVE_FLOAT64
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF64);

void Run(const RowNormForward<double>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF64)(p, first, last);
}
void Run(const RowNormBackward<double>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF64)(p, first, last);
}
#endif

}  // namespace lattice::kernels
#endif
