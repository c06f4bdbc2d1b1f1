// The short convolution as a torch operator with gradients.
#ifndef LATTICE_OPS_SHORT_CONV_H_
#define LATTICE_OPS_SHORT_CONV_H_

#include <ATen/core/Tensor.h>

#include <optional>

#include "ops/recurrence.h"

namespace lattice {

// y [B,T,C] from x [B,T,C], weight [C,W] (newest token last) and bias [C]; see kernels/dense/short_conv.h. `past`
// [B,W-1,C] holds the inputs before x, oldest first. With cu_seqlens (ops/recurrence.h) every sequence starts from
// its own past [N,W-1,C], or from zeros.
LATTICE_EXPORT at::Tensor CausalConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                     const std::optional<at::Tensor>& past = {},
                                     const std::optional<at::Tensor>& cu_seqlens = {});

// The last W-1 inputs after x: what `past` must be for the tokens that follow. Gradients flow through it.
LATTICE_EXPORT at::Tensor NextPast(const at::Tensor& x, int64_t width,
                                   const std::optional<at::Tensor>& past = {});

}  // namespace lattice

#endif  // LATTICE_OPS_SHORT_CONV_H_
