#include "nn/loss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/softmax_loss.h"
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

// losses of the rows of logits, which become their gradients: scale (softmax - one-hot).
void LossAndGradient(const at::Tensor& targets, double scale, at::Tensor& logits, at::Tensor losses) {
  if (logits.scalar_type() == at::kFloat) {
    const at::Tensor ids = targets.contiguous();
    const int64_t* id = ids.const_data_ptr<int64_t>();
    float *rows = logits.mutable_data_ptr<float>(), *out = losses.mutable_data_ptr<float>();
    const int64_t classes = logits.size(1);
    at::parallel_for(0, logits.size(0), 4, [&](int64_t first, int64_t last) {
      kernels::SoftmaxLoss(rows + first * classes, id + first, last - first, classes,
                           static_cast<float>(scale), out + first);
    });
    return;
  }
  const at::Tensor ignored = targets.lt(0).unsqueeze(1), target = targets.clamp_min(0).unsqueeze(1);
  const at::Tensor lse = logits.logsumexp(1, /*keepdim=*/true);
  losses.copy_((lse - logits.gather(1, target)).masked_fill_(ignored, 0).squeeze(1));
  logits.sub_(lse)
      .exp_()
      .scatter_add_(1, target, at::full_like(lse, -1))
      .mul_(scale)
      .masked_fill_(ignored, 0);
}

class LinearCrossEntropyFunction : public torch::autograd::Function<LinearCrossEntropyFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& weight,
                            const at::Tensor& targets, bool bf16) {
    const int64_t N = hidden.size(0), rows = BlockRows(weight.size(0));
    const int64_t count = targets.ge(0).sum().item<int64_t>();
    Check(count > 0, "[loss] no target counts: all ", N, " are negative");
    const at::Tensor w = bf16 ? weight.to(at::kBFloat16) : weight, wt = w.t();
    at::Tensor dhidden = at::empty_like(hidden), dweight = at::zeros_like(weight);
    at::Tensor losses = at::empty({N}, hidden.options());
    for (int64_t first = 0; first < N; first += rows) {
      const int64_t n = std::min(rows, N - first);
      const at::Tensor h = hidden.narrow(0, first, n);
      at::Tensor logits = Product(h, wt, bf16).contiguous();
      LossAndGradient(targets.narrow(0, first, n), 1.0 / static_cast<double>(count), logits,
                      losses.narrow(0, first, n));
      dhidden.narrow(0, first, n).copy_(Product(logits, w, bf16));
      dweight.add_(Product(logits.t(), h, bf16));
    }
    ctx->save_for_backward({dhidden, dweight});
    return (losses.to(at::kDouble).sum() / static_cast<double>(count)).to(hidden.scalar_type());
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
