// LayerNorm times a GELU gate as a torch operator with gradients.
#ifndef LATTICE_OPS_GATED_NORM_H_
#define LATTICE_OPS_GATED_NORM_H_

#include <ATen/core/Tensor.h>

#include "ops/recurrence.h"

namespace lattice {

// gelu(gate) * (layer_norm(x) * weight + bias) over the last dimension, in the type of the gate. x and gate
// have one shape; x, weight and bias are float32 and the gate too or bfloat16, or all are float64. Saves only
// x and the gate for the backward pass.
LATTICE_EXPORT at::Tensor GatedLayerNorm(const at::Tensor& x, const at::Tensor& gate,
                                         const at::Tensor& weight, const at::Tensor& bias, double eps);

}  // namespace lattice

#endif  // LATTICE_OPS_GATED_NORM_H_
