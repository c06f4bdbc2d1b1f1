// The error function and what GELU needs of it, a vector at a time.
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

// The standard normal distribution at x, and exp(-x^2 / 2), which comes with it.
template <class V>
struct Normal {
  V below, bell;
};

// By Abramowitz and Stegun 7.1.26: erf(|x|) = 1 - p(t) exp(-x^2), t = 1 / (1 + 0.3275911 |x|).
template <class D, class V = hn::Vec<D>>
HWY_INLINE Normal<V> NormalAt(D d, V x) {
  const auto set = [&](float value) { return hn::Set(d, value); };
  const auto size = hn::Abs(hn::Mul(x, set(0.70710678f)));
  const auto t = hn::Div(set(1), hn::MulAdd(set(0.3275911f), size, set(1)));
  auto p = hn::MulAdd(set(1.061405429f), t, set(-1.453152027f));
  p = hn::MulAdd(p, t, set(1.421413741f));
  p = hn::MulAdd(p, t, set(-0.284496736f));
  p = hn::MulAdd(p, t, set(0.254829592f));
  const auto bell = hn::Exp(d, hn::Neg(hn::Mul(size, size)));
  const auto erf = hn::CopySign(hn::NegMulAdd(hn::Mul(p, t), bell, set(1)), x);
  return {hn::MulAdd(set(0.5f), erf, set(0.5f)), bell};
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_GELU_INL_H_
