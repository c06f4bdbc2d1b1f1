// lattice::linear_cross_entropy, block by block of rows: logits, losses, and, where gradients are wanted, what the
// logits' gradients give hidden states and weight, before the block is forgotten.
#include "ops/linear_loss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>

#include "kernels/dense/pointwise.h"
#include "kernels/dense/softmax_loss.h"
#include "ops/composite.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/products.h"
#include "ops/storage.h"

namespace lattice {
namespace {

constexpr int64_t kLossGrain = 1 << 16;

// Rows whose logits are held at once: 32 M logits are 64 MiB in bfloat16. Every block adds a whole gradient
// of the weight, so few large ones are better than many small ones.
int64_t BlockRows(int64_t vocabulary) { return std::max<int64_t>(64, (int64_t{32} << 20) / vocabulary); }

// losses of the rows of logits, which become their gradients: scale (softmax - one-hot).
void LossAndGradient(const at::Tensor& targets, double scale, at::Tensor& logits, at::Tensor losses) {
  if (logits.scalar_type() == at::kDouble || composite::Computes(logits))
    return composite::SoftmaxLoss(targets, scale, logits, losses);
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
  if (part.scalar_type() != at::kBFloat16 || !part.device().is_cpu()) {
    total.add_(part);
    return;
  }
  const uint16_t* from = DataOf<uint16_t>(part);
  float* to = total.mutable_data_ptr<float>();
  at::parallel_for(0, total.numel(), kLossGrain, [&](int64_t first, int64_t last) {
    kernels::AddTo(from + first, last - first, to + first);
  });
}

// The loss, and its gradients where they are wanted.
using LossResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using LossSignature = at::Tensor(const at::Tensor& hidden, const at::Tensor& weight,
                                 const at::Tensor& targets, bool bf16);
using LossForwardSignature = LossResult(const at::Tensor& hidden, const at::Tensor& weight,
                                        const at::Tensor& targets, bool bf16, bool gradients);

// Losses, and sums of gradients, are at least float32.
at::ScalarType LossType(const at::Tensor& weight) {
  return weight.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void CheckLoss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  RequireOneDevice("[linear_cross_entropy]", {hidden, weight, targets});
  TORCH_CHECK_VALUE(hidden.dim() == 2 && weight.dim() == 2 && hidden.sym_size(1) == weight.sym_size(1) &&
                        targets.dim() == 1 && targets.sym_size(0) == hidden.sym_size(0) &&
                        targets.scalar_type() == at::kLong,
                    "[linear_cross_entropy] needs hidden [N,C], weight [V,C] and targets int64 [N], got ",
                    hidden.sym_sizes(), ", ", weight.sym_sizes(), " and ", targets.scalar_type(), " ",
                    targets.sym_sizes());
}

LossResult LossForward(const at::Tensor& hidden_in, const at::Tensor& weight, const at::Tensor& targets,
                       bool bf16, bool gradients) {
  CheckLoss(hidden_in, weight, targets);
  const int64_t N = hidden_in.size(0), rows = BlockRows(weight.size(0));
  // Both in one transfer: on a GPU the host waits for it.
  const at::Tensor facts =
      N == 0 ? at::zeros({2}, at::kLong) : at::stack({targets.ge(0).sum(), targets.max()}).cpu();
  const int64_t count = facts[0].item<int64_t>(), largest = facts[1].item<int64_t>();
  TORCH_CHECK_VALUE(count > 0, "[linear_cross_entropy] no target counts: all ", N, " are negative");
  TORCH_CHECK_VALUE(largest < weight.size(0), "[linear_cross_entropy] target ", largest, " is not below the ",
                    weight.size(0), " rows of the weight");
  const at::ScalarType type = bf16 ? at::kBFloat16 : weight.scalar_type(), wide = LossType(weight);
  const at::Tensor w = weight.to(type), hidden = hidden_in.to(type).contiguous();
  at::Tensor dhidden = gradients ? at::empty_like(hidden) : Nothing(hidden_in), dweight;
  at::Tensor losses = at::empty({N}, weight.options().dtype(wide));
  for (int64_t first = 0; first < N; first += rows) {
    const int64_t n = std::min(rows, N - first);
    const at::Tensor h = hidden.narrow(0, first, n);
    at::Tensor logits = OutputProduct(h, w).contiguous();
    LossAndGradient(targets.narrow(0, first, n), 1.0 / static_cast<double>(count), logits,
                    losses.narrow(0, first, n));
    if (!gradients) continue;
    dhidden.narrow(0, first, n).copy_(InputGradient(logits, w));
    const at::Tensor part = WeightGradient(logits, h).contiguous();
    if (dweight.defined()) {
      Accumulate(part, dweight);
    } else {
      dweight = part.to(wide);
    }
  }
  const at::Tensor loss = (losses.to(at::kDouble).sum() / static_cast<double>(count)).to(wide);
  if (!gradients) return {loss, dhidden, Nothing(weight)};
  return {loss, dhidden.to(hidden_in.scalar_type()), dweight.to(weight.scalar_type())};
}

LossResult LossShape(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, bool,
                     bool gradients) {
  CheckLoss(hidden, weight, targets);
  const at::Tensor loss = at::empty({}, weight.options().dtype(LossType(weight)));
  if (!gradients) return {loss, Nothing(hidden), Nothing(weight)};
  return {loss, NewLike(hidden), NewLike(weight)};
}

at::Tensor LossAutograd(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                        bool bf16) {
  CheckLoss(hidden, weight, targets);
  static const auto op = Operator<LossForwardSignature>("lattice::_linear_cross_entropy");
  const auto [loss, dhidden, dweight] =
      BelowAutograd(op, hidden, weight, targets, bf16, /*gradients=*/WantsGradient({hidden, weight}));
  const auto backward = [](const variable_list& in, const variable_list& grads) -> variable_list {
    const at::Tensor& g = grads[0];
    // The gradient of the loss itself is nearly always 1, and the weight's is large.
    if (g.device().is_cpu() && HasValues(g) && g.item<double>() == 1) return {in[0], in[1]};
    return {in[0] * g, in[1] * g};
  };
  DifferentiateLayer("[linear_cross_entropy]", {hidden, weight}, {loss}, {dhidden, dweight}, backward);
  return loss;
}

at::Tensor LossWithoutGradients(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                bool bf16) {
  static const auto op = Operator<LossForwardSignature>("lattice::_linear_cross_entropy");
  return std::get<0>(op.call(hidden, weight, targets, bf16, /*gradients=*/false));
}

}  // namespace

at::Tensor LinearCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                              bool bf16) {
  static const auto op = Operator<LossSignature>("lattice::linear_cross_entropy");
  return op.call(hidden, weight, targets, bf16);
}

at::Tensor TokenCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                             bool bf16) {
  at::NoGradGuard no_grad;
  const int64_t N = hidden.size(0), rows = BlockRows(weight.size(0));
  const at::ScalarType type = bf16 ? at::kBFloat16 : weight.scalar_type();
  const at::Tensor w = weight.to(type), x = hidden.to(type);
  std::vector<at::Tensor> losses;
  for (int64_t first = 0; first < N; first += rows) {
    const int64_t n = std::min(rows, N - first);
    const at::Tensor target = targets.narrow(0, first, n);
    const at::Tensor logits = OutputProduct(x.narrow(0, first, n), w).to(LossType(weight));
    const at::Tensor picked = logits.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
    losses.push_back((logits.logsumexp(1) - picked).masked_fill_(target.lt(0), 0));
  }
  return at::cat(losses);
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, bool bf16=False) -> Tensor");
  m.def(
      "_linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, bool bf16, bool gradients) "
      "-> (Tensor loss, Tensor dhidden, Tensor dweight)");
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) { m.impl("_linear_cross_entropy", LossShape); }
TORCH_LIBRARY_IMPL(lattice, CompositeExplicitAutograd, m) {
  m.impl("linear_cross_entropy", LossWithoutGradients);
  m.impl("_linear_cross_entropy", LossForward);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("linear_cross_entropy", LossAutograd);
  m.impl("_linear_cross_entropy", WithoutDerivative());
}

}  // namespace lattice
