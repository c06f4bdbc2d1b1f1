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
                            const at::Tensor& wanted, const at::Tensor& wanted_weight) {
    const c10::NoGradGuard no_grad;
    const int64_t rows = hidden.size(0), block = BlockRows(weight.size(0));
    at::Tensor gradient = at::empty_like(hidden), sum = at::zeros({}, at::kDouble);
    for (int64_t first = 0; first < rows; first += block) {
      const int64_t count = std::min(block, rows - first);
      const at::Tensor log_p = at::log_softmax(at::linear(wanted.narrow(0, first, count), wanted_weight), -1);
      const at::Tensor log_q = at::log_softmax(at::linear(hidden.narrow(0, first, count), weight), -1);
      const at::Tensor p = log_p.exp();
      sum += (p * (log_p - log_q)).sum().to(at::kDouble);
      gradient.narrow(0, first, count)
          .copy_(at::matmul(log_q.exp().sub_(p), weight).div_(static_cast<double>(rows)));
    }
    ctx->save_for_backward({gradient});
    return (sum / static_cast<double>(rows)).to(hidden.scalar_type());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {ctx->get_saved_variables()[0] * grads[0], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Divergence(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& wanted,
                      const at::Tensor& wanted_weight) {
  return DivergenceFunction::apply(hidden, weight.detach(), wanted, wanted_weight);
}

}  // namespace lattice::distill
