#include "nn/loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "nn/layers.h"

namespace lattice::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows whose logits are held at once: 8 M logits are 32 MiB.
int64_t BlockRows(int64_t vocabulary) { return std::max<int64_t>(64, (int64_t{8} << 20) / vocabulary); }

// a @ b in the precision of the scope, in the type of the operands.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b, bool bf16) {
  return bf16 ? at::mm(a.to(at::kBFloat16), b.to(at::kBFloat16)).to(at::kFloat) : at::mm(a, b);
}

class LinearCrossEntropyFunction : public torch::autograd::Function<LinearCrossEntropyFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& weight,
                            const at::Tensor& targets, bool bf16) {
    const int64_t N = hidden.size(0), rows = BlockRows(weight.size(0));
    const at::Tensor counted = targets.ge(0);
    const int64_t count = counted.sum().item<int64_t>();
    Check(count > 0, "[loss] no target counts: all ", N, " are negative");
    const at::Tensor w = bf16 ? weight.to(at::kBFloat16) : weight, wt = w.t();
    at::Tensor dhidden = at::empty_like(hidden), dweight = at::zeros_like(weight);
    at::Tensor total = at::zeros({}, hidden.options());
    for (int64_t first = 0; first < N; first += rows) {
      const int64_t n = std::min(rows, N - first);
      const at::Tensor h = hidden.narrow(0, first, n), valid = counted.narrow(0, first, n).unsqueeze(1);
      const at::Tensor target = targets.narrow(0, first, n).clamp_min(0).unsqueeze(1);
      at::Tensor logits = Product(h, wt, bf16);
      const at::Tensor lse = logits.logsumexp(1, /*keepdim=*/true);
      total += (lse - logits.gather(1, target)).masked_fill_(valid.logical_not(), 0).sum();
      // The gradient of the mean: (softmax - one-hot) / count, on the logits' own memory.
      at::Tensor& dlogits = logits.sub_(lse).exp_();
      dlogits.scatter_add_(1, target, at::full_like(lse, -1));
      dlogits.mul_(valid.to(hidden.scalar_type()) / static_cast<double>(count));
      dhidden.narrow(0, first, n).copy_(Product(dlogits, w, bf16));
      dweight.add_(Product(dlogits.t(), h, bf16));
    }
    ctx->save_for_backward({dhidden, dweight});
    return total / static_cast<double>(count);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    return {saved[0] * grads[0], saved[1] * grads[0], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor LinearCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  return LinearCrossEntropyFunction::apply(hidden, weight, targets, Bf16Scope::active());
}

at::Tensor TokenCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  at::NoGradGuard no_grad;
  const int64_t N = hidden.size(0), rows = BlockRows(weight.size(0));
  const at::Tensor wt = weight.t();
  std::vector<at::Tensor> losses;
  for (int64_t first = 0; first < N; first += rows) {
    const int64_t n = std::min(rows, N - first);
    const at::Tensor target = targets.narrow(0, first, n);
    const at::Tensor logits = Product(hidden.narrow(0, first, n), wt, Bf16Scope::active());
    const at::Tensor picked = logits.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
    losses.push_back((logits.logsumexp(1) - picked).masked_fill_(target.lt(0), 0));
  }
  return at::cat(losses);
}

}  // namespace lattice::nn
