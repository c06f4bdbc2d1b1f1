// The three matrix products of a linear layer y = x W^T, x [N,in], W [out,in], y and g [N,out]. All operands
// of one type; sums are float32 or wider.
//
// On AMD CPUs large float32 products of the first two kinds go to oneDNN: MKL, which torch calls, runs its
// AVX2 code there and is slower (docs/decisions.md has figures). The choice depends on the CPU and the sizes
// only, so a run can be repeated.
#ifndef LATTICE_OPS_PRODUCTS_H_
#define LATTICE_OPS_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include "base/export.h"

namespace lattice {

// x W^T
LATTICE_EXPORT at::Tensor OutputProduct(const at::Tensor& x, const at::Tensor& weight);
// g W
LATTICE_EXPORT at::Tensor InputGradient(const at::Tensor& g, const at::Tensor& weight);
// g^T x
LATTICE_EXPORT at::Tensor WeightGradient(const at::Tensor& g, const at::Tensor& x);

}  // namespace lattice

#endif  // LATTICE_OPS_PRODUCTS_H_
