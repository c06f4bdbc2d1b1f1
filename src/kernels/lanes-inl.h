// What Highway leaves to the instruction set, in one way for all of x86 and for WebAssembly: the order in which lanes are
// added, and rounding to integers. (NEON adds neighbours first, and fuses multiply-adds in any case.) SSE4 and WebAssembly, whose vectors have 128 bits and neither of which has fused multiply-adds,
// then compute the same bits; so does plain C++ (scalar) by Clang and GCC 12.3, but not by older ones, where Highway's
// vectors have one lane.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_LANES_INL_H_
#undef LATTICE_KERNELS_LANES_INL_H_
#else
#define LATTICE_KERNELS_LANES_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The sum of a vector's lanes: its halves are added until one number is left, as SIMD instructions of x86 do.
template <class D, class V>
HWY_INLINE hn::TFromD<D> SumLanes(D d, V v) {
#if HWY_TARGET == HWY_EMU128
  // Highway adds one lane after the other here.
  alignas(16) hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (size_t half = hn::Lanes(d) / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
#else
  return hn::GetLane(hn::SumOfLanes(d, v));
#endif
}

// The nearest integers of floats that int32 can hold, of two the even one.
template <class D, class V>
HWY_INLINE auto NearestIntegers([[maybe_unused]] D d, V v) {
#if HWY_TARGET == HWY_EMU128
  // Highway makes 1 of 0.49999997 here, because it adds 0.5 and cuts off.
  const hn::RebindToSigned<D> integer;
  alignas(16) float lanes[hn::MaxLanes(D())];
  alignas(16) int32_t rounded[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) rounded[i] = static_cast<int32_t>(std::nearbyint(lanes[i]));
  return hn::Load(integer, rounded);
#else
  return hn::NearestInt(v);
#endif
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_LANES_INL_H_
