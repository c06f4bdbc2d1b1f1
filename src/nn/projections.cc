#include "nn/projections.h"

#include <ATen/ATen.h>

#include "nn/layers.h"
#include "ops/projections.h"

namespace lattice::nn {

Projections::Projections(std::vector<at::Tensor> weights) : weights_(std::move(weights)) {}

const at::Tensor& Projections::Joined(at::ScalarType type) const {
  int64_t version = 0;
  for (const at::Tensor& weight : weights_) version += weight._version();
  if (joined_.defined() && version == version_ && joined_.scalar_type() == type) return joined_;
  joined_ = JoinWeights(weights_, type);
  version_ = version;
  return joined_;
}

std::vector<at::Tensor> Projections::operator()(const at::Tensor& x) const {
  const at::ScalarType type = Bf16Scope::active() ? at::kBFloat16 : weights_[0].scalar_type();
  return Project(x, Joined(type), weights_);
}

}  // namespace lattice::nn
