// Linear layers without bias that share their input, as a torch operator with gradients.
#ifndef LATTICE_OPS_PROJECTIONS_H_
#define LATTICE_OPS_PROJECTIONS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "base/export.h"

namespace lattice {

// x [..., in] -> x W_i^T [..., out_i], multiplied, saved and returned in the type of `joined`: all weights W_i
// [out_i, in] below each other, which may be rounded. The input's gradient is one product over all weights and has
// the type of x; those of the weights have theirs.
LATTICE_EXPORT std::vector<at::Tensor> Project(const at::Tensor& x, const at::Tensor& joined,
                                               at::TensorList weights);

// All weights below each other in `type`, without history.
LATTICE_EXPORT at::Tensor JoinWeights(at::TensorList weights, at::ScalarType type);

}  // namespace lattice

#endif  // LATTICE_OPS_PROJECTIONS_H_
