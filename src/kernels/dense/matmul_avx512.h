// Matrix products with instructions that Highway does not offer: bf16 with AVX-512 BF16, int8 with AVX-512
// VNNI.
#ifndef LATTICE_KERNELS_DENSE_MATMUL_AVX512_H_
#define LATTICE_KERNELS_DENSE_MATMUL_AVX512_H_

#include "kernels/dense/matmul.h"

namespace lattice::kernels {

// Whether the CPU has the instructions and LATTICE_ISA allows them.
bool HasBf16();
bool HasVnni();

// As the functions of matmul.h; only where the CPU has the instructions.
void RoundRowsBf16(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last);
void MatMulBf16(const MatMul& p, int64_t first, int64_t last);
void MatMulVnni(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_MATMUL_AVX512_H_
