#include "kernels/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/swiglu.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/isa.h"
#include "kernels/storage-inl.h"

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
  const int64_t N = hn::Lanes(d);
  const auto step = [&](const S* from_a, const S* from_b, S* to) HWY_ATTR {
    const auto x = LoadAs(d, from_a);
    StoreAs(hn::Mul(hn::Mul(x, Sigmoid(d, x)), LoadAs(d, from_b)), d, to);
  };
  int64_t i = 0;
  for (; i + N <= n; i += N) step(a + i, b + i, y + i);
  if (i == n) return;
  Tail<S> out(n - i);
  step(Tail<S>(a + i, n - i).values, Tail<S>(b + i, n - i).values, out.values);
  out.CopyTo(y + i);
}

// With s = sigmoid(a): d silu / da = s + a s (1 - s) = s (1 + a - a s).
template <typename S>
HWY_INLINE void Backward(const S* a, const S* b, const S* dy, int64_t n, S* da, S* db) {
  const hn::ScalableTag<Computed<S>> d;
  const int64_t N = hn::Lanes(d);
  const auto one = hn::Set(d, Computed<S>(1));
  const auto step = [&](const S* from_a, const S* from_b, const S* from_dy, S* to_a, S* to_b) HWY_ATTR {
    const auto x = LoadAs(d, from_a), g = LoadAs(d, from_dy);
    const auto s = Sigmoid(d, x), xs = hn::Mul(x, s);
    const auto slope = hn::Mul(s, hn::Sub(hn::Add(one, x), xs));
    StoreAs(hn::Mul(g, hn::Mul(slope, LoadAs(d, from_b))), d, to_a);
    StoreAs(hn::Mul(g, xs), d, to_b);
  };
  int64_t i = 0;
  for (; i + N <= n; i += N) step(a + i, b + i, dy + i, da + i, db + i);
  if (i == n) return;
  Tail<S> out_a(n - i), out_b(n - i);
  step(Tail<S>(a + i, n - i).values, Tail<S>(b + i, n - i).values, Tail<S>(dy + i, n - i).values,
       out_a.values, out_b.values);
  out_a.CopyTo(da + i);
  out_b.CopyTo(db + i);
}

void ForwardF32(const float* a, const float* b, int64_t n, float* y) { Forward(a, b, n, y); }
void ForwardF64(const double* a, const double* b, int64_t n, double* y) { Forward(a, b, n, y); }
void ForwardBf16(const uint16_t* a, const uint16_t* b, int64_t n, uint16_t* y) { Forward(a, b, n, y); }
void BackwardF32(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db) {
  Backward(a, b, dy, n, da, db);
}
void BackwardF64(const double* a, const double* b, const double* dy, int64_t n, double* da, double* db) {
  Backward(a, b, dy, n, da, db);
}
void BackwardBf16(const uint16_t* a, const uint16_t* b, const uint16_t* dy, int64_t n, uint16_t* da,
                  uint16_t* db) {
  Backward(a, b, dy, n, da, db);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(ForwardBf16);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardF64);
HWY_EXPORT(BackwardBf16);

void SwiGluForward(const float* a, const float* b, int64_t n, float* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF32)(a, b, n, y);
}
void SwiGluForward(const double* a, const double* b, int64_t n, double* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF64)(a, b, n, y);
}
void SwiGluForward(const uint16_t* a, const uint16_t* b, int64_t n, uint16_t* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardBf16)(a, b, n, y);
}
void SwiGluBackward(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF32)(a, b, dy, n, da, db);
}
void SwiGluBackward(const double* a, const double* b, const double* dy, int64_t n, double* da, double* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF64)(a, b, dy, n, da, db);
}
void SwiGluBackward(const uint16_t* a, const uint16_t* b, const uint16_t* dy, int64_t n, uint16_t* da,
                    uint16_t* db) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardBf16)(a, b, dy, n, da, db);
}

}  // namespace lattice::kernels
#endif
