// The bf16 product on CPUs that multiply bf16 (AVX-512 BF16), which Highway does not reach.
#ifndef LATTICE_KERNELS_MATMUL_BF16_H_
#define LATTICE_KERNELS_MATMUL_BF16_H_

#include "kernels/matmul.h"

namespace lattice::kernels {

// The CPU has the instructions and LATTICE_ISA allows them.
bool HasBf16();
void RoundRowsBf16(const float* x, int64_t cols, const Bf16Rows& out, int64_t first, int64_t last);
void MatMulBf16(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MATMUL_BF16_H_
