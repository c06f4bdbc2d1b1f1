// The instruction set in effect (isa.h) as a number, for code that is made for one of them.
#ifndef LATTICE_KERNELS_ISA_LEVEL_H_
#define LATTICE_KERNELS_ISA_LEVEL_H_

namespace lattice::kernels {

// Those of an architecture are in order: each has what the ones before it have.
enum class IsaLevel {
  kScalar,
  kSse4,
  kAvx2,
  kAvx512,
  kNeon,     // every 64-bit ARM
  kNeonDot,  // and SDOT: products of four bytes (Armv8.2 and later)
  kNeonBf16,  // and BFDOT and USDOT: products of bfloat16, and of unsigned with signed bytes (Armv8.6 and later)
};

IsaLevel CurrentLevel();

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ISA_LEVEL_H_
