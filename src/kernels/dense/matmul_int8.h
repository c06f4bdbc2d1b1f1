// The int8 matrix product for CPUs without AVX-512 VNNI.
#ifndef LATTICE_KERNELS_DENSE_MATMUL_INT8_H_
#define LATTICE_KERNELS_DENSE_MATMUL_INT8_H_

#include "kernels/dense/matmul.h"

namespace lattice::kernels {

// As MatMulRows, for kInt8.
void MatMulInt8(const MatMul& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_MATMUL_INT8_H_
