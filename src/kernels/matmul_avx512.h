// The products that Highway does not reach: bf16 on CPUs that multiply it (AVX-512 BF16), int8 on CPUs with
// AVX-512 VNNI.
#ifndef LATTICE_KERNELS_MATMUL_AVX512_H_
#define LATTICE_KERNELS_MATMUL_AVX512_H_

#include "kernels/matmul.h"

namespace lattice::kernels {

// The CPU has the instructions and LATTICE_ISA allows them.
bool HasBf16();
bool HasVnni();

void RoundRowsBf16(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last);
void MatMulBf16(const MatMul& p, int64_t first, int64_t last);
// For at most kMostVnniColumns columns: a lane of the sum gets a sixteenth of them and holds 1,040 of the
// largest products.
constexpr int64_t kMostVnniColumns = 16 * 1024;
void MatMulVnni(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MATMUL_AVX512_H_
