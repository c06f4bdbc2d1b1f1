// Short convolutions to unit vectors as a torch operator with gradients: queries and keys.
#ifndef LATTICE_OPS_UNIT_CONV_H_
#define LATTICE_OPS_UNIT_CONV_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

#include "ops/recurrence.h"

namespace lattice {

// Weights [C,W] (newest token last) and bias [C] of a short convolution.
struct ConvFilter {
  at::Tensor weight, bias;
};

// Two convolutions of x [B,T,C], and every vector of `size` neighbouring channels of the results divided by
// sqrt(|.|^2 + eps): what CausalConv and UnitVectors give, in one pass that saves only x for the backward pass. x is float32 or
// bfloat16, the filters and results are float32. past and cu_seqlens are those of CausalConv.
LATTICE_EXPORT std::pair<at::Tensor, at::Tensor> UnitConvs(const at::Tensor& x, const ConvFilter& first,
                                                           const ConvFilter& second, int64_t size, double eps,
                                                           const std::optional<at::Tensor>& past = {},
                                                           const std::optional<at::Tensor>& cu_seqlens = {});

}  // namespace lattice

#endif  // LATTICE_OPS_UNIT_CONV_H_
