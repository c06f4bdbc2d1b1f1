// The layers made of ATen operators alone, for tensors on devices that have no kernels of ours: GPUs.
//
// Autograd, torch.func, fake tensors and torch.compile see nothing but ATen operators here, which a compiler for GPUs
// can fuse. Arguments and results are those of the functions of the same names in row_norm.h, short_conv.h,
// unit_conv.h, gated_norm.h, swiglu.h and projections.h, which check them before they come here. Against the kernels
// results differ by rounding, more is held for the backward pass, and second derivatives exist.
#ifndef LATTICE_OPS_COMPOSITE_H_
#define LATTICE_OPS_COMPOSITE_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "ops/inputs.h"

namespace lattice::composite {

// Whether a layer of x is computed here: x is neither on the CPU nor without data (meta), or the operator
// lattice::_composite_layers has said so for all devices, as tests do.
bool Computes(const at::Tensor& x);

// x + delta, or x where there is none, and x / sqrt(share |x|^2 + eps) * weight of that sum.
std::pair<at::Tensor, at::Tensor> RowNorm(const at::Tensor& x, const OptionalTensor& delta,
                                          const OptionalTensor& weight, double share, double eps, bool bf16);

// The bounds of packed sequences are checked where they have values.
at::Tensor CausalConv(const char* op, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const OptionalTensor& past, const OptionalTensor& cu_seqlens);

// `size` neighbouring channels of y [B,T,C] as vectors of length 1.
at::Tensor UnitVectors(const at::Tensor& y, int64_t size, double eps);

at::Tensor GatedLayerNorm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                          const at::Tensor& bias, double eps);

// In bfloat16 silu(a) is rounded before it is multiplied.
at::Tensor SiluTimes(const at::Tensor& a, const at::Tensor& b);

// Products in `type`.
std::vector<at::Tensor> Project(const at::Tensor& x, at::TensorList weights, at::ScalarType type);

// The losses of rows of logits [n,V], and the logits become their gradients: scale (softmax - one-hot). Targets below 0
// count for nothing.
void SoftmaxLoss(const at::Tensor& targets, double scale, at::Tensor& logits, at::Tensor& losses);

}  // namespace lattice::composite

#endif  // LATTICE_OPS_COMPOSITE_H_
