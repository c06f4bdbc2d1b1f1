// silu(a) * b as a torch operator with gradients.
#ifndef LATTICE_OPS_SWIGLU_H_
#define LATTICE_OPS_SWIGLU_H_

#include <ATen/core/Tensor.h>

#include "ops/recurrence.h"

namespace lattice {

// a and b have one shape and type: float32, float64 or bfloat16 (computed in float32). Saves only a and b
// for the backward pass.
LATTICE_EXPORT at::Tensor SiluTimes(const at::Tensor& a, const at::Tensor& b);

}  // namespace lattice

#endif  // LATTICE_OPS_SWIGLU_H_
