// Loads and stores that convert between stored and computed types: uint16_t holds the bits of bfloat16 and is
// computed in float32; float and double are stored as they are computed.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_DENSE_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_DENSE_STORAGE_INL_H_
#undef LATTICE_KERNELS_DENSE_STORAGE_INL_H_
#else
#define LATTICE_KERNELS_DENSE_STORAGE_INL_H_
#endif

#include <bit>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The type in which stored numbers of type S are computed.
template <typename S>
using Computed = std::conditional_t<std::is_same_v<S, uint16_t>, float, S>;

template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const hn::TFromD<D>* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
}

template <class D>
HWY_INLINE void StoreAs(hn::Vec<D> v, D d, hn::TFromD<D>* p) {
  hn::StoreU(v, d, p);
}
// Rounds to nearest, ties to even; NaN stays NaN.
template <class D>
HWY_INLINE void StoreAs(hn::Vec<D> v, D /*d*/, uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(d32, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fffu))));
  const auto nan = hn::Or(high, hn::Set(d32, 0x40u));
  const auto result = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), nan, rounded);
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<D>(), result)), d16, p);
}

// The same for one number.
template <typename T>
HWY_INLINE T Get(const T& x) {
  return x;
}
HWY_INLINE float Get(const uint16_t& x) { return std::bit_cast<float>(uint32_t{x} << 16); }

template <typename T>
HWY_INLINE void Put(T x, T* p) {
  *p = x;
}
HWY_INLINE void Put(float x, uint16_t* p) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t high = bits >> 16;
  *p = static_cast<uint16_t>(x != x ? high | 0x40u : (bits + 0x7fffu + (high & 1u)) >> 16);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_STORAGE_INL_H_
