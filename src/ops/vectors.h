// Queries, keys and values behind their projections: convolutions, normalisation, rotary positions.
#ifndef LATTICE_OPS_VECTORS_H_
#define LATTICE_OPS_VECTORS_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

#include "base/export.h"
#include "model/config.h"
#include "ops/unit_conv.h"

namespace lattice {

// Inside the root of a length: smooth at zero, and no vector grows beyond length 1.
inline constexpr double kUnitEps = 1e-12;

// Over the last dimension: to length 1, or divided by its square root.
LATTICE_EXPORT at::Tensor NormalizeVectors(const at::Tensor& x, model::VectorNorm kind);

LATTICE_EXPORT at::Tensor Activate(const at::Tensor& x, model::Activation kind);

// q and k [B,T,H,size] from their common projection x [B,T,H*size], which may be bfloat16 beside float32 filters:
// a short convolution each, the activation, the normalisation. In one pass where all of it is fused (UnitConvs).
// past and cu_seqlens are those of CausalConv.
LATTICE_EXPORT std::pair<at::Tensor, at::Tensor> QueriesAndKeys(
    const at::Tensor& x, const ConvFilter& q, const ConvFilter& k, int64_t size, model::VectorNorm norm,
    model::Activation activation, const std::optional<at::Tensor>& past = {},
    const std::optional<at::Tensor>& cu_seqlens = {});

// The radians per position of model::RopeRates, as float64 [pairs].
LATTICE_EXPORT at::Tensor RopeRateTensor(const model::ModelConfig& config, int64_t pairs);

// Rotary positions on the last dimension of x [B,T,H,D], pairs (i, i + D/2) turned by position times rates[i].
// `position` [T] or [B,T], any number type; taken modulo the period where that is not 0.
LATTICE_EXPORT at::Tensor Rotate(const at::Tensor& x, const at::Tensor& position, const at::Tensor& rates,
                                 int64_t period = 0);

}  // namespace lattice

#endif  // LATTICE_OPS_VECTORS_H_
