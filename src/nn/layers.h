// The small parts blocks are made of.
#ifndef LATTICE_NN_LAYERS_H_
#define LATTICE_NN_LAYERS_H_

#include <ATen/core/Tensor.h>

namespace lattice::nn {

// While one lives, matrix products of this thread run in bfloat16: operands are rounded. Results of Linear come back in
// float32, those of projections are bfloat16 (see Wide). Nests.
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

}  // namespace lattice::nn

#endif  // LATTICE_NN_LAYERS_H_
