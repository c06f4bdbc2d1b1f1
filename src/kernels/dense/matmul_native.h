// Matrix products with instructions that Highway does not offer: AVX-512 BF16 and VNNI on x86-64
// (matmul_avx512.cc), BFDOT, USDOT and SDOT on 64-bit ARM (matmul_neon.cc).
#ifndef LATTICE_KERNELS_DENSE_MATMUL_NATIVE_H_
#define LATTICE_KERNELS_DENSE_MATMUL_NATIVE_H_

#include "kernels/dense/matmul.h"

namespace lattice::kernels {

// Whether the CPU multiplies vectors of bf16, or of bytes, there is a product for it, and LATTICE_ISA allows it.
bool HasNativeBf16();
bool HasNativeInt8();
bool HasNativeInt4();

// As the functions of matmul.h; only where the CPU has the instructions.
void RoundRowsNative(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last);
void MatMulBf16Native(const MatMul& p, int64_t first, int64_t last);
void MatMulInt8Native(const MatMul& p, int64_t first, int64_t last);
void MatMulInt4Native(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_MATMUL_NATIVE_H_
