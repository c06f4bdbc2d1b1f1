#include "kernels/row_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_norm.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
HWY_INLINE T Dot3(const T* a, const T* b, const T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto x = hn::LoadU(d, a + i);
    const auto y = w == nullptr ? hn::LoadU(d, b + i) : hn::Mul(hn::LoadU(d, b + i), hn::LoadU(d, w + i));
    sum = hn::MulAdd(x, y, sum);
  }
  T total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += a[i] * (w == nullptr ? b[i] : b[i] * w[i]);
  return total;
}

// out = a x + b y w over a row, w null: ones.
template <typename T>
HWY_INLINE void Combine(T a, const T* x, T b, const T* y, const T* w, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    auto term = hn::Mul(hn::Set(d, b), hn::LoadU(d, y + i));
    if (w != nullptr) term = hn::Mul(term, hn::LoadU(d, w + i));
    hn::StoreU(hn::MulAdd(hn::Set(d, a), hn::LoadU(d, x + i), term), d, out + i);
  }
  for (; i < n; ++i) out[i] = std::fma(a, x[i], w == nullptr ? b * y[i] : b * y[i] * w[i]);
}

// out += a x y
template <typename T>
HWY_INLINE void AddScaledProduct(T a, const T* x, const T* y, int64_t n, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto ax = hn::Mul(hn::Set(d, a), hn::LoadU(d, x + i));
    hn::StoreU(hn::MulAdd(ax, hn::LoadU(d, y + i), hn::LoadU(d, out + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = std::fma(a * x[i], y[i], out[i]);
}

template <typename T>
HWY_INLINE T InverseLength(const RowNorm<T>& p, const T* x) {
  return T(1) / std::sqrt(p.share * Dot3<T>(x, x, nullptr, p.width) + p.eps);
}

template <typename T>
HWY_INLINE void Forward(const RowNorm<T>& p, T* y, int64_t first, int64_t last) {
  const int64_t end = std::min(p.rows, last * RowNorm<T>::kTileRows);
  for (int64_t row = first * RowNorm<T>::kTileRows; row < end; ++row) {
    const T* x = p.x + row * p.width;
    Combine(T(0), x, InverseLength(p, x), x, p.weight, p.width, y + row * p.width);
  }
}

// With g = dy w: dx = r g - (share r^3 <g, x>) x, dw += r x dy.
template <typename T>
HWY_INLINE void Backward(const RowNorm<T>& p, const T* dy, T* dx, T* partial, int64_t first, int64_t last) {
  for (int64_t tile = first; tile < last; ++tile) {
    T* dw = p.weight == nullptr ? nullptr : partial + tile * p.width;
    if (dw != nullptr) std::fill(dw, dw + p.width, T(0));
    const int64_t end = std::min(p.rows, (tile + 1) * RowNorm<T>::kTileRows);
    for (int64_t row = tile * RowNorm<T>::kTileRows; row < end; ++row) {
      const T *x = p.x + row * p.width, *g = dy + row * p.width;
      const T r = InverseLength(p, x);
      const T along = -p.share * r * r * r * Dot3(x, g, p.weight, p.width);
      if (dw != nullptr) AddScaledProduct(r, x, g, p.width, dw);
      Combine(along, x, r, g, p.weight, p.width, dx + row * p.width);
    }
  }
}

void RowNormForwardF32(const RowNorm<float>& p, float* y, int64_t a, int64_t b) { Forward(p, y, a, b); }
void RowNormForwardF64(const RowNorm<double>& p, double* y, int64_t a, int64_t b) { Forward(p, y, a, b); }
void RowNormBackwardF32(const RowNorm<float>& p, const float* dy, float* dx, float* partial, int64_t a,
                        int64_t b) {
  Backward(p, dy, dx, partial, a, b);
}
void RowNormBackwardF64(const RowNorm<double>& p, const double* dy, double* dx, double* partial, int64_t a,
                        int64_t b) {
  Backward(p, dy, dx, partial, a, b);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(RowNormForwardF32);
HWY_EXPORT(RowNormForwardF64);
HWY_EXPORT(RowNormBackwardF32);
HWY_EXPORT(RowNormBackwardF64);

void RowNormForward(const RowNorm<float>& norm, float* y, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(RowNormForwardF32)(norm, y, first, last);
}
void RowNormForward(const RowNorm<double>& norm, double* y, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(RowNormForwardF64)(norm, y, first, last);
}
void RowNormBackward(const RowNorm<float>& norm, const float* dy, float* dx, float* partial, int64_t first,
                     int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(RowNormBackwardF32)(norm, dy, dx, partial, first, last);
}
void RowNormBackward(const RowNorm<double>& norm, const double* dy, double* dx, double* partial,
                     int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(RowNormBackwardF64)(norm, dy, dx, partial, first, last);
}

}  // namespace lattice::kernels
#endif
