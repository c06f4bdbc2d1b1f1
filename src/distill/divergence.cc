#include "distill/divergence.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace lattice::distill {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows whose logits are held at once: 16 M of them are 64 MiB.
int64_t BlockRows(int64_t vocabulary) { return std::max<int64_t>(16, (int64_t{16} << 20) / vocabulary); }

class DivergenceFunction : public torch::autograd::Function<DivergenceFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& weight,
                            const at::Tensor& wanted, const at::Tensor& wanted_weight, bool bf16) {
    const c10::NoGradGuard no_grad;
    const at::ScalarType wide = hidden.scalar_type(), type = bf16 ? at::kBFloat16 : wide;
    const at::Tensor w = weight.to(type), w_wanted = wanted_weight.to(type);
    const int64_t rows = hidden.size(0), block = BlockRows(weight.size(0));
    at::Tensor gradient = at::empty_like(hidden), sum = at::zeros({}, at::kDouble);
    for (int64_t first = 0; first < rows; first += block) {
      const int64_t count = std::min(block, rows - first);
      const auto log_probabilities = [&](const at::Tensor& x, const at::Tensor& head) {
        return at::log_softmax(at::linear(x.narrow(0, first, count).to(type), head), -1, wide);
      };
      const at::Tensor log_p = log_probabilities(wanted, w_wanted), log_q = log_probabilities(hidden, w);
      const at::Tensor p = log_p.exp();
      sum += (p * (log_p - log_q)).sum().to(at::kDouble);
      gradient.narrow(0, first, count)
          .copy_(at::matmul(log_q.exp().sub_(p).to(type), w))
          .div_(static_cast<double>(rows));
    }
    ctx->save_for_backward({gradient});
    return (sum / static_cast<double>(rows)).to(hidden.scalar_type());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {ctx->get_saved_variables()[0] * grads[0], at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Divergence(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& wanted,
                      const at::Tensor& wanted_weight, bool bf16) {
  return DivergenceFunction::apply(hidden, weight.detach(), wanted, wanted_weight, bf16);
}

}  // namespace lattice::distill
