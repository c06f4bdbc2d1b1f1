// Row normalisation as a torch operator with gradients.
#ifndef LATTICE_OPS_ROW_NORM_H_
#define LATTICE_OPS_ROW_NORM_H_

#include <ATen/core/Tensor.h>

#include <utility>

#include "ops/recurrence.h"

namespace lattice {

// x / sqrt(mean(x^2) + eps) * weight over the last dimension; x float32, or float64. With `bf16` the result
// of a float32 x is rounded to bfloat16.
LATTICE_EXPORT at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps,
                                  bool bf16 = false);

// s = x + delta, and RmsNorm(s). delta has the type of x, or is bfloat16.
LATTICE_EXPORT std::pair<at::Tensor, at::Tensor> AddRmsNorm(const at::Tensor& x, const at::Tensor& delta,
                                                            const at::Tensor& weight, double eps,
                                                            bool bf16 = false);

// x / sqrt(|x|^2 + eps) over the last dimension.
LATTICE_EXPORT at::Tensor UnitVectors(const at::Tensor& x, double eps);

}  // namespace lattice

#endif  // LATTICE_OPS_ROW_NORM_H_
