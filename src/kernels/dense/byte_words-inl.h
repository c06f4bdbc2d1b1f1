// Products of words of four bytes, those of weights with those of activations, on every instruction set.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_DENSE_BYTE_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_DENSE_BYTE_WORDS_INL_H_
#undef LATTICE_KERNELS_DENSE_BYTE_WORDS_INL_H_
#else
#define LATTICE_KERNELS_DENSE_BYTE_WORDS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using IntVec = hn::Vec<I32>;

// The four bytes of a word, unpacked for multiplication: those of W are unsigned, those of x signed. On x86 and in
// WebAssembly they become pairs of 16-bit integers, the even and the odd bytes; elsewhere four vectors of 32-bit
// integers.
#if HWY_ARCH_WASM || (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
using I16 = hn::Repartition<int16_t, I32>;
struct Words {
  hn::Vec<I16> even, odd;
};
HWY_INLINE Words WordsOfW(IntVec w) {
  const hn::RebindToUnsigned<I16> d;
  const auto pairs = hn::BitCast(d, w);
  return {hn::BitCast(I16(), hn::And(pairs, hn::Set(d, uint16_t{255}))),
          hn::BitCast(I16(), hn::ShiftRight<8>(pairs))};
}
HWY_INLINE Words WordsOfX(uint32_t x) {
  const auto pairs = hn::BitCast(I16(), hn::Set(I32(), static_cast<int32_t>(x)));
  return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
}
// There ReorderWidenMulAccumulate adds the products of neighbours to the first sum and ignores the second.
HWY_INLINE IntVec AddProducts(const Words& w, const Words& x, IntVec sum) {
  IntVec none = hn::Zero(I32());
  sum = hn::ReorderWidenMulAccumulate(I32(), w.even, x.even, sum, none);
  return hn::ReorderWidenMulAccumulate(I32(), w.odd, x.odd, sum, none);
}
#else
struct Words {
  // Spelled out, because GCC 12 makes implicit constructors without the instruction set of this namespace.
  HWY_INLINE Words() {}
  HWY_INLINE Words(IntVec a, IntVec b, IntVec c, IntVec d) : bytes{a, b, c, d} {}
  IntVec bytes[4];
};
HWY_INLINE Words WordsOfW(IntVec w) {
  const auto mask = hn::Set(I32(), 255);
  return {hn::And(w, mask), hn::And(hn::ShiftRight<8>(w), mask), hn::And(hn::ShiftRight<16>(w), mask),
          hn::And(hn::ShiftRight<24>(w), mask)};
}
HWY_INLINE Words WordsOfX(uint32_t x) {
  int8_t bytes[4];
  std::memcpy(bytes, &x, 4);
  return {hn::Set(I32(), bytes[0]), hn::Set(I32(), bytes[1]), hn::Set(I32(), bytes[2]),
          hn::Set(I32(), bytes[3])};
}
HWY_INLINE IntVec AddProducts(const Words& w, const Words& x, IntVec sum) {
  for (int i = 0; i < 4; ++i) sum = hn::Add(sum, hn::Mul(w.bytes[i], x.bytes[i]));
  return sum;
}
#endif

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_BYTE_WORDS_INL_H_
