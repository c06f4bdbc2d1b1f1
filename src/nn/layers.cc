#include "nn/layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "ops/row_norm.h"

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

at::Tensor NormalizeVectors(const at::Tensor& x, model::VectorNorm kind) {
  switch (kind) {
    case model::VectorNorm::kNone:
      return x;
    case model::VectorNorm::kL2:
      return UnitVectors(x, kUnitEps);
    case model::VectorNorm::kScale:
      return x * (1 / std::sqrt(static_cast<double>(x.size(-1))));
  }
  return x;
}

at::Tensor Rotate(const at::Tensor& x, int64_t first, double theta, int64_t period) {
  const int64_t T = x.size(1), half = x.size(-1) / 2;
  const auto options = x.options().dtype(at::kDouble);
  at::Tensor position = at::arange(first, first + T, options);
  if (period > 0) position = position.remainder(period);
  const at::Tensor rate = at::pow(theta, at::arange(half, options) * (-1.0 / static_cast<double>(half)));
  const at::Tensor angle = (position.unsqueeze(1) * rate).view({1, T, 1, half});
  const at::Tensor cos = angle.cos().to(x.scalar_type()), sin = angle.sin().to(x.scalar_type());
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  std::vector<at::Tensor> parts = {a * cos - b * sin, a * sin + b * cos};
  if (x.size(-1) % 2 == 1) parts.push_back(x.narrow(-1, 2 * half, 1));
  return at::cat(parts, -1);
}

}  // namespace lattice::nn
