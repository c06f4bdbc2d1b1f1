// The int8 product on CPUs with AVX-512 VNNI, which Highway does not reach. Same sums as the portable code.
#ifndef LATTICE_KERNELS_MATMUL_VNNI_H_
#define LATTICE_KERNELS_MATMUL_VNNI_H_

#include "kernels/matmul.h"

namespace lattice::kernels {

// The CPU has the instructions and LATTICE_ISA allows them.
bool HasVnni();
void MatMulVnni(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MATMUL_VNNI_H_
