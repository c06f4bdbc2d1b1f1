#include "kernels/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/swiglu.cc"
#include "hwy/foreach_target.h"

#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
}

template <typename T>
HWY_INLINE void Forward(const T* a, const T* b, int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto x = hn::LoadU(d, a + i);
    hn::StoreU(hn::Mul(hn::Mul(x, Sigmoid(d, x)), hn::LoadU(d, b + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] = a[i] / (T(1) + std::exp(-a[i])) * b[i];
}

// With s = sigmoid(a): d silu / da = s + a s (1 - s) = s (1 + a - a s).
template <typename T>
HWY_INLINE void Backward(const T* a, const T* b, const T* dy, int64_t n, T* da, T* db) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  const auto one = hn::Set(d, T(1));
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto x = hn::LoadU(d, a + i), g = hn::LoadU(d, dy + i);
    const auto s = Sigmoid(d, x), xs = hn::Mul(x, s);
    const auto slope = hn::Mul(s, hn::Sub(hn::Add(one, x), xs));
    hn::StoreU(hn::Mul(g, hn::Mul(slope, hn::LoadU(d, b + i))), d, da + i);
    hn::StoreU(hn::Mul(g, xs), d, db + i);
  }
  for (; i < n; ++i) {
    const T s = T(1) / (T(1) + std::exp(-a[i]));
    da[i] = dy[i] * b[i] * s * (T(1) + a[i] - a[i] * s);
    db[i] = dy[i] * a[i] * s;
  }
}

void SwiGluForwardF32(const float* a, const float* b, int64_t n, float* y) { Forward(a, b, n, y); }
void SwiGluForwardF64(const double* a, const double* b, int64_t n, double* y) { Forward(a, b, n, y); }
void SwiGluBackwardF32(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db) {
  Backward(a, b, dy, n, da, db);
}
void SwiGluBackwardF64(const double* a, const double* b, const double* dy, int64_t n, double* da,
                       double* db) {
  Backward(a, b, dy, n, da, db);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(SwiGluForwardF32);
HWY_EXPORT(SwiGluForwardF64);
HWY_EXPORT(SwiGluBackwardF32);
HWY_EXPORT(SwiGluBackwardF64);

void SwiGluForward(const float* a, const float* b, int64_t n, float* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(SwiGluForwardF32)(a, b, n, y);
}
void SwiGluForward(const double* a, const double* b, int64_t n, double* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(SwiGluForwardF64)(a, b, n, y);
}
void SwiGluBackward(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(SwiGluBackwardF32)(a, b, dy, n, da, db);
}
void SwiGluBackward(const double* a, const double* b, const double* dy, int64_t n, double* da, double* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(SwiGluBackwardF64)(a, b, dy, n, da, db);
}

}  // namespace lattice::kernels
#endif
