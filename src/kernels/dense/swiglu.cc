// The element-wise product of a SwiGLU and its gradients, as SIMD loops.
#include "kernels/dense/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/swiglu.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
}

template <typename S>
HWY_INLINE void Forward(const S* a, const S* b, int64_t n, S* y) {
  const hn::ScalableTag<Computed<S>> d;
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto x = io.Load(a + i);
    io.Store(hn::Mul(hn::Mul(x, Sigmoid(d, x)), io.Load(b + i)), y + i);
  });
}

// With s = sigmoid(a): d silu / da = s + a s (1 - s) = s (1 + a - a s).
template <typename S>
HWY_INLINE void Backward(const S* a, const S* b, const S* dy, int64_t n, S* da, S* db) {
  const hn::ScalableTag<Computed<S>> d;
  const auto one = hn::Set(d, Computed<S>(1));
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto x = io.Load(a + i), g = io.Load(dy + i);
    const auto s = Sigmoid(d, x), xs = hn::Mul(x, s);
    const auto slope = hn::Mul(s, hn::Sub(hn::Add(one, x), xs));
    io.Store(hn::Mul(g, hn::Mul(slope, io.Load(b + i))), da + i);
    io.Store(hn::Mul(g, xs), db + i);
  });
}

void ForwardF32(const float* a, const float* b, int64_t n, float* y) { Forward(a, b, n, y); }
void ForwardBf16(const uint16_t* a, const uint16_t* b, int64_t n, uint16_t* y) { Forward(a, b, n, y); }
void BackwardF32(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db) {
  Backward(a, b, dy, n, da, db);
}
void BackwardBf16(const uint16_t* a, const uint16_t* b, const uint16_t* dy, int64_t n, uint16_t* da,
                  uint16_t* db) {
  Backward(a, b, dy, n, da, db);
}
#if HWY_HAVE_FLOAT64  // not in WebAssembly
void ForwardF64(const double* a, const double* b, int64_t n, double* y) { Forward(a, b, n, y); }
void BackwardF64(const double* a, const double* b, const double* dy, int64_t n, double* da, double* db) {
  Backward(a, b, dy, n, da, db);
}
#endif

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardBf16);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardBf16);

void SwiGluForward(const float* a, const float* b, int64_t n, float* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF32)(a, b, n, y);
}
void SwiGluForward(const uint16_t* a, const uint16_t* b, int64_t n, uint16_t* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardBf16)(a, b, n, y);
}
void SwiGluBackward(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF32)(a, b, dy, n, da, db);
}
void SwiGluBackward(const uint16_t* a, const uint16_t* b, const uint16_t* dy, int64_t n, uint16_t* da,
                    uint16_t* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardBf16)(a, b, dy, n, da, db);
}

#if HWY_HAVE_FLOAT64
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF64);

void SwiGluForward(const double* a, const double* b, int64_t n, double* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF64)(a, b, n, y);
}
void SwiGluBackward(const double* a, const double* b, const double* dy, int64_t n, double* da, double* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF64)(a, b, dy, n, da, db);
}
#endif

}  // namespace lattice::kernels
#endif
