// The small parts blocks are made of.
#ifndef LATTICE_NN_LAYERS_H_
#define LATTICE_NN_LAYERS_H_

#include <ATen/core/Tensor.h>

#include "model/config.h"
#include "ops/row_norm.h"

namespace lattice::nn {

// While one lives, matrix products of this thread run in bfloat16: operands are rounded, results come back in
// float32. Nests.
class Bf16Scope {
 public:
  explicit Bf16Scope(bool on);
  ~Bf16Scope();
  Bf16Scope(const Bf16Scope&) = delete;
  Bf16Scope& operator=(const Bf16Scope&) = delete;
  static bool active();

 private:
  bool before_;
};

// bfloat16 as float32; other types stay.
at::Tensor Wide(const at::Tensor& x);

// x W^T with W [out, in].
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight);

// Inside the root of a length: smooth at zero, and no vector grows beyond length 1.
inline constexpr double kUnitEps = 1e-12;

// Normalisation of queries, keys or values over the last dimension: to length 1, or divided by its square
// root.
at::Tensor NormalizeVectors(const at::Tensor& x, model::VectorNorm kind);

// Rotary positions on the last dimension of x [B,T,H,D], pairs (i, i + D/2); token t stands at first + t.
at::Tensor Rotate(const at::Tensor& x, int64_t first, double theta, int64_t period = 0);

}  // namespace lattice::nn

#endif  // LATTICE_NN_LAYERS_H_
