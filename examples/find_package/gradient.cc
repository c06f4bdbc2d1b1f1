// The torch operator from C++: y depends on the initial state, and the gradient says how.
#include <lattice/ops/recurrence.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

int main() {
  torch::manual_seed(1);
  const int64_t B = 1, T = 32, H = 2, M = 8, D = 8;
  const auto options = torch::TensorOptions().dtype(torch::kFloat64);
  const auto q = torch::randn({B, T, H, M}, options), k = torch::randn({B, T, H, M}, options);
  const auto v = torch::randn({B, T, H, D}, options), gamma = torch::rand({B, T, H}, options);
  auto state = torch::nn::functional::normalize(torch::randn({B, H, M, D}, options),
                                                torch::nn::functional::NormalizeFuncOptions().dim(-1));
  state.requires_grad_(true);

  const auto loss = [&](const torch::Tensor& start) {
    return std::get<0>(lattice::Scan(q, k, v, gamma, start)).sum();
  };
  loss(state).backward();

  // The derivative along one direction, by differences.
  torch::NoGradGuard no_grad;
  const auto direction = torch::randn_like(state);
  const double step = 1e-6;
  const double expected =
      (loss(state + step * direction) - loss(state - step * direction)).item<double>() / (2 * step);
  const double got = (state.grad() * direction).sum().item<double>();
  std::printf("derivative along a direction: %.8f by backward, %.8f by differences\n", got, expected);
  return std::abs(got - expected) <= 1e-6 * (1 + std::abs(expected)) ? 0 : 1;
}
