#include "nn/layers.h"

#include <ATen/ATen.h>

namespace lattice::nn {
namespace {

thread_local bool bf16_active = false;

}  // namespace

Bf16Scope::Bf16Scope(bool on) : before_(bf16_active) { bf16_active = on; }
Bf16Scope::~Bf16Scope() { bf16_active = before_; }
bool Bf16Scope::active() { return bf16_active; }

at::Tensor Wide(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; }

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight) {
  if (!bf16_active) return at::linear(x, weight);
  return at::linear(x.to(at::kBFloat16), weight.to(at::kBFloat16)).to(at::kFloat);
}

}  // namespace lattice::nn
