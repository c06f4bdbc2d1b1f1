#include "nn/loss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/dense/pointwise.h"
#include "kernels/dense/softmax_loss.h"
#include "nn/layers.h"
#include "nn/products.h"
#include "ops/storage.h"

namespace lattice::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 1 << 16;

// Rows whose logits are held at once: 32 M logits are 64 MiB in bfloat16. Every block adds a whole gradient
// of the weight, so few large ones are better than many small ones.
int64_t BlockRows(int64_t vocabulary) { return std::max<int64_t>(64, (int64_t{32} << 20) / vocabulary); }

// losses of the rows of logits, which become their gradients: scale (softmax - one-hot).
void LossAndGradient(const at::Tensor& targets, double scale, at::Tensor& logits, at::Tensor losses) {
  if (logits.scalar_type() == at::kDouble) {
    const at::Tensor ignored = targets.lt(0).unsqueeze(1), target = targets.clamp_min(0).unsqueeze(1);
    const at::Tensor lse = logits.logsumexp(1, /*keepdim=*/true);
    losses.copy_((lse - logits.gather(1, target)).masked_fill_(ignored, 0).squeeze(1));
    logits.sub_(lse)
        .exp_()
        .scatter_add_(1, target, at::full_like(lse, -1))
        .mul_(scale)
        .masked_fill_(ignored, 0);
    return;
  }
  const at::Tensor ids = targets.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  float* out = losses.mutable_data_ptr<float>();
  const int64_t classes = logits.size(1);
  const auto run = [&](auto* rows) {
    at::parallel_for(0, logits.size(0), 4, [&](int64_t first, int64_t last) {
      kernels::SoftmaxLoss(rows + first * classes, id + first, last - first, classes,
                           static_cast<float>(scale), out + first);
    });
  };
  if (logits.scalar_type() == at::kFloat) return run(MutableDataOf<float>(logits));
  run(MutableDataOf<uint16_t>(logits));
}

// total += part, which may be bfloat16.
void Accumulate(const at::Tensor& part, at::Tensor& total) {
  if (part.scalar_type() != at::kBFloat16) {
    total.add_(part);
    return;
  }
  const uint16_t* from = DataOf<uint16_t>(part);
  float* to = total.mutable_data_ptr<float>();
  at::parallel_for(0, total.numel(), kGrain, [&](int64_t first, int64_t last) {
    kernels::AddTo(from + first, last - first, to + first);
  });
}

class LinearCrossEntropyFunction : public torch::autograd::Function<LinearCrossEntropyFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden_in, const at::Tensor& weight,
                            const at::Tensor& targets, bool bf16) {
    const int64_t N = hidden_in.size(0), rows = BlockRows(weight.size(0));
    const int64_t count = targets.ge(0).sum().item<int64_t>();
    Check(count > 0, "[loss] no target counts: all ", N, " are negative");
    const at::ScalarType type = bf16 ? at::kBFloat16 : weight.scalar_type();
    const at::Tensor w = weight.to(type), hidden = hidden_in.to(type).contiguous();
    at::Tensor dhidden = at::empty_like(hidden), dweight;
    at::Tensor losses = at::empty({N}, weight.options());
    for (int64_t first = 0; first < N; first += rows) {
      const int64_t n = std::min(rows, N - first);
      const at::Tensor h = hidden.narrow(0, first, n);
      at::Tensor logits = OutputProduct(h, w).contiguous();
      LossAndGradient(targets.narrow(0, first, n), 1.0 / static_cast<double>(count), logits,
                      losses.narrow(0, first, n));
      dhidden.narrow(0, first, n).copy_(InputGradient(logits, w));
      const at::Tensor part = WeightGradient(logits, h).contiguous();
      if (dweight.defined()) {
        Accumulate(part, dweight);
      } else {
        dweight = part.to(weight.scalar_type());
      }
    }
    ctx->save_for_backward({dhidden.to(hidden_in.scalar_type()), dweight});
    return (losses.to(at::kDouble).sum() / static_cast<double>(count)).to(weight.scalar_type());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const double g = grads[0].item<double>();
    if (g != 1) {
      saved[0].mul_(g);
      saved[1].mul_(g);
    }
    return {saved[0], saved[1], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor LinearCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  return LinearCrossEntropyFunction::apply(hidden, weight, targets, Bf16Scope::active());
}

at::Tensor TokenCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  at::NoGradGuard no_grad;
  const int64_t N = hidden.size(0), rows = BlockRows(weight.size(0));
  const at::ScalarType type = Bf16Scope::active() ? at::kBFloat16 : weight.scalar_type();
  const at::Tensor w = weight.to(type), x = hidden.to(type);
  std::vector<at::Tensor> losses;
  for (int64_t first = 0; first < N; first += rows) {
    const int64_t n = std::min(rows, N - first);
    const at::Tensor target = targets.narrow(0, first, n);
    const at::Tensor logits = Wide(OutputProduct(x.narrow(0, first, n), w));
    const at::Tensor picked = logits.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
    losses.push_back((logits.logsumexp(1) - picked).masked_fill_(target.lt(0), 0));
  }
  return at::cat(losses);
}

}  // namespace lattice::nn
