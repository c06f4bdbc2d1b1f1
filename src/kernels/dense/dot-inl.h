// <a, b> of two rows of floats of any length, summed in the same order for every caller.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_DENSE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_DENSE_DOT_INL_H_
#undef LATTICE_KERNELS_DENSE_DOT_INL_H_
#else
#define LATTICE_KERNELS_DENSE_DOT_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float Dot(const float* a, const float* b, int64_t n) {
  const hn::ScalableTag<float> d;
  auto sum = hn::Zero(d);
  OverColumns(d, n,
              [&](int64_t i, auto io) HWY_ATTR { sum = hn::MulAdd(io.Load(a + i), io.Load(b + i), sum); });
  return SumLanes(d, sum);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_DOT_INL_H_
