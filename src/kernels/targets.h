// The instruction sets the kernels are compiled for, included before hwy/highway.h in every kernel.
// AVX2 and AVX-512 are what x86 servers and laptops have; older x86 CPUs run the portable code.
// Vectors of a size unknown at compile time (SVE, RVV) are left out: the kernels keep them in arrays.
#ifndef LATTICE_KERNELS_TARGETS_H_
#define LATTICE_KERNELS_TARGETS_H_

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#endif  // LATTICE_KERNELS_TARGETS_H_
