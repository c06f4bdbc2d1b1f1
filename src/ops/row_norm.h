// Row normalisation as a torch operator with gradients.
#ifndef LATTICE_OPS_ROW_NORM_H_
#define LATTICE_OPS_ROW_NORM_H_

#include <ATen/core/Tensor.h>

#include "ops/recurrence.h"

namespace lattice {

// x / sqrt(mean(x^2) + eps) * weight over the last dimension.
LATTICE_EXPORT at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

// x / sqrt(|x|^2 + eps) over the last dimension.
LATTICE_EXPORT at::Tensor UnitVectors(const at::Tensor& x, double eps);

}  // namespace lattice

#endif  // LATTICE_OPS_ROW_NORM_H_
