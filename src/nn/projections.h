// Linear layers without bias that share their input.
#ifndef LATTICE_NN_PROJECTIONS_H_
#define LATTICE_NN_PROJECTIONS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace lattice::nn {

// Weights W_i [out_i, in] for one input (ops/projections.h). The input is rounded once, its gradient is one product
// over all weights, and weights are rounded once per update, which their version counters tell (fused
// optimizers of torch do not count: call bump_version). Not for two threads at a time.
class Projections {
 public:
  explicit Projections(std::vector<at::Tensor> weights);

  // x [..., in] -> x W_i^T [..., out_i]. Within a Bf16Scope everything is multiplied, saved and returned in
  // bfloat16, whatever the type of x; its gradient has the type of x.
  std::vector<at::Tensor> operator()(const at::Tensor& x) const;

  // The only result where there is one weight.
  at::Tensor One(const at::Tensor& x) const { return (*this)(x)[0]; }

 private:
  // All weights below each other in `type`; a cached copy, made again when a weight has changed.
  const at::Tensor& Joined(at::ScalarType type) const;

  std::vector<at::Tensor> weights_;
  mutable at::Tensor joined_;
  mutable int64_t version_ = -1;
};

}  // namespace lattice::nn

#endif  // LATTICE_NN_PROJECTIONS_H_
