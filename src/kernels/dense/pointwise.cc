// The operations between the matrix products of a model at inference, as SIMD loops over a row.
#include "kernels/dense/pointwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/pointwise.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/dense/dot-inl.h"
#include "kernels/dense/gelu-inl.h"
#include "kernels/isa.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVec = hn::Vec<F32>;

// y[i] = f(x[i], y[i]) a vector at a time.
template <typename S, class F>
HWY_INLINE void Map(const S* x, int64_t n, float* y, const F& f) {
  const F32 d;
  OverColumns(d, n,
              [&](int64_t i, auto io) HWY_ATTR { io.Store(f(d, io.Load(x + i), io.Load(y + i)), y + i); });
}

void AddToVec(const float* x, int64_t n, float* y) {
  Map(x, n, y, [](F32, FloatVec a, FloatVec b) { return hn::Add(a, b); });
}

void AddToBf16(const uint16_t* x, int64_t n, float* y) {
  Map(x, n, y, [](F32, FloatVec a, FloatVec b) { return hn::Add(a, b); });
}

void Silu(float* x, int64_t n) {
  Map(x, n, x, [](F32 d, FloatVec a, FloatVec) {
    return hn::Div(a, hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Neg(a))));
  });
}

void Gelu(const float* gate, int64_t n, float* y) {
  Map(gate, n, y, [](F32 d, FloatVec g, FloatVec b) { return hn::Mul(hn::Mul(g, NormalAt(d, g).cdf), b); });
}

// log sigmoid(x) = min(x, 0) - log(1 + exp(-|x|))
void SigmoidPow(float* x, int64_t n, float power) {
  Map(x, n, x, [power](F32 d, FloatVec a, FloatVec) {
    const auto log = hn::Sub(hn::Min(a, hn::Zero(d)), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(a)))));
    return hn::Exp(d, hn::Mul(log, hn::Set(d, power)));
  });
}

HWY_INLINE float Sum(const float* x, int64_t n) {
  const F32 d;
  auto sum = hn::Zero(d);
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR { sum = hn::Add(sum, io.Load(x + i)); });
  return SumLanes(d, sum);
}

void LayerNorm(float* x, const float* weight, const float* bias, int64_t n, float eps) {
  const float mean = Sum(x, n) / static_cast<float>(n);
  Map(x, n, x, [mean](F32 d, FloatVec a, FloatVec) { return hn::Sub(a, hn::Set(d, mean)); });
  const float scale = 1 / std::sqrt(Dot(x, x, n) / static_cast<float>(n) + eps);
  Map(weight, n, x,
      [scale](F32 d, FloatVec w, FloatVec a) { return hn::Mul(hn::Mul(a, hn::Set(d, scale)), w); });
  AddToVec(bias, n, x);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(AddToVec);
HWY_EXPORT(AddToBf16);
HWY_EXPORT(Silu);
HWY_EXPORT(Gelu);
HWY_EXPORT(SigmoidPow);
HWY_EXPORT(LayerNorm);

void AddTo(const float* x, int64_t n, float* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(AddToVec)(x, n, y);
}
void AddTo(const uint16_t* x, int64_t n, float* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(AddToBf16)(x, n, y);
}
void SiluInPlace(float* x, int64_t n) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Silu)(x, n);
}
void GeluTimes(const float* gate, int64_t n, float* y) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Gelu)(gate, n, y);
}
void SigmoidPower(float* x, int64_t n, float power) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(SigmoidPow)(x, n, power);
}
void LayerNormRow(float* x, const float* weight, const float* bias, int64_t n, float eps) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(LayerNorm)(x, weight, bias, n, eps);
}

}  // namespace lattice::kernels
#endif
