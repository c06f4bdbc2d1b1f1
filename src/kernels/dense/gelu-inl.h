// The standard normal distribution function, which GELU and its gradient need: gelu(x) = x cdf(x).
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_DENSE_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_DENSE_GELU_INL_H_
#undef LATTICE_KERNELS_DENSE_GELU_INL_H_
#else
#define LATTICE_KERNELS_DENSE_GELU_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// cdf(x) = (1 + erf(x / sqrt 2)) / 2, and exp(-x^2 / 2), which is computed on the way.
template <class V>
struct Normal {
  V cdf, gauss;
};

// With erf by Abramowitz and Stegun 7.1.26, to 1.5e-7: erf(|x|) = 1 - p(t) exp(-x^2), where p is a polynomial
// and t = 1 / (1 + 0.3275911 |x|).
template <class D, class V = hn::Vec<D>>
HWY_INLINE Normal<V> NormalAt(D d, V x) {
  const auto set = [&](float value) { return hn::Set(d, value); };
  const auto size = hn::Abs(hn::Mul(x, set(0.70710678f)));
  const auto t = hn::Div(set(1), hn::MulAdd(set(0.3275911f), size, set(1)));
  auto p = hn::MulAdd(set(1.061405429f), t, set(-1.453152027f));
  p = hn::MulAdd(p, t, set(1.421413741f));
  p = hn::MulAdd(p, t, set(-0.284496736f));
  p = hn::MulAdd(p, t, set(0.254829592f));
  const auto gauss = hn::Exp(d, hn::Neg(hn::Mul(size, size)));
  const auto erf = hn::CopySign(hn::NegMulAdd(hn::Mul(p, t), gauss, set(1)), x);
  return {hn::MulAdd(set(0.5f), erf, set(0.5f)), gauss};
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_GELU_INL_H_
