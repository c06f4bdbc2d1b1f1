// The int4 matrix product, on every CPU.
#ifndef LATTICE_KERNELS_DENSE_MATMUL_INT4_H_
#define LATTICE_KERNELS_DENSE_MATMUL_INT4_H_

#include "kernels/dense/matmul.h"

namespace lattice::kernels {

// As MatMulRows, for kInt4.
void MatMulInt4(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_MATMUL_INT4_H_
