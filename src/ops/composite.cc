#include "ops/composite.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <atomic>

#include "ops/gated_products.h"

namespace lattice::composite {
namespace {

using at::Tensor;

std::atomic<bool> everywhere{false};

// For every token of packed sequences, which row of the matrix [pasts; x] stands `lag` tokens before it. Bounds that
// nobody could check give wrong rows, but rows that exist.
class PackedRows {
 public:
  PackedRows(const Tensor& cu_seqlens, const Tensor& x, int64_t keep)
      : keep_(keep), pasts_((cu_seqlens.sym_size(0) - 1) * keep), last_(pasts_ + x.sym_size(1) - 1) {
    const Tensor starts = cu_seqlens.to(x.device(), at::kLong);
    time_ = at::arange(x.sym_size(1), starts.options());
    sequence_ = at::searchsorted(starts, time_, /*out_int32=*/false, /*right=*/true)
                    .sub(1)
                    .clamp(0, starts.sym_size(0) - 2);
    age_ = time_ - starts.index_select(0, sequence_);
  }

  Tensor Before(int64_t lag) const {
    const Tensor in_past = sequence_ * keep_ + (age_ + (keep_ - lag));
    return at::where(age_ >= lag, time_ + (pasts_ - lag), in_past).clamp(0, last_);
  }

 private:
  const int64_t keep_;
  const c10::SymInt pasts_, last_;
  Tensor time_, sequence_, age_;  // age: tokens of the same sequence before this one
};

// Inputs before the first token, oldest first: [sequences, keep, C].
Tensor PastOf(const OptionalTensor& past, const Tensor& x, const c10::SymInt& sequences, int64_t keep) {
  return past.has_value() ? past->to(x.scalar_type())
                          : at::zeros_symint({sequences, keep, x.sym_size(2)}, x.options());
}

}  // namespace

bool Computes(const Tensor& x) { return everywhere.load(std::memory_order_relaxed) || !HasCpuKernels(x); }

std::pair<Tensor, Tensor> RowNorm(const Tensor& x, const OptionalTensor& delta, const OptionalTensor& weight,
                                  double share, double eps, bool bf16) {
  const Tensor sum = delta.has_value() ? x + delta->to(x.scalar_type()) : x;
  Tensor y = sum * (sum.square().sum(-1, /*keepdim=*/true) * share + eps).rsqrt();
  if (weight.has_value()) y = y * *weight;
  return {sum, bf16 ? y.to(at::kBFloat16) : y};
}

Tensor CausalConv(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const OptionalTensor& past, const OptionalTensor& cu_seqlens) {
  const int64_t width = PlainSize(weight, 1), keep = width - 1;
  Tensor y = bias;
  const auto add = [&](int64_t place, const Tensor& input) { y = y + weight.select(1, place) * input; };
  if (!cu_seqlens.has_value()) {
    const Tensor all = at::cat({PastOf(past, x, x.sym_size(0), keep), x}, 1);
    for (int64_t i = 0; i < width; ++i) add(i, all.narrow_symint(1, i, x.sym_size(1)));
    return y;
  }
  CheckSequenceStarts(op, *cu_seqlens, x.sym_size(1));
  const Tensor pasts = PastOf(past, x, cu_seqlens->sym_size(0) - 1, keep);
  const Tensor all = at::cat({pasts.flatten(0, 1), x.squeeze(0)}, 0);
  const PackedRows rows(*cu_seqlens, x, keep);
  for (int64_t i = 0; i < width; ++i) add(i, all.index_select(0, rows.Before(keep - i)).unsqueeze(0));
  return y;
}

Tensor UnitVectors(const Tensor& y, int64_t size, double eps) {
  return RowNorm(y.unflatten(-1, {-1, size}), {}, {}, 1.0, eps, false).second.flatten(-2);
}

Tensor GatedLayerNorm(const Tensor& x, const Tensor& gate, const Tensor& weight, const Tensor& bias,
                      double eps) {
  const Tensor norm = at::layer_norm_symint(x, {x.sym_size(-1)}, weight, bias, eps);
  return (at::gelu(gate.to(x.scalar_type())) * norm).to(gate.scalar_type());
}

Tensor SiluTimes(const Tensor& a, const Tensor& b) { return at::silu(a) * b; }

std::vector<Tensor> Project(const Tensor& x, at::TensorList weights, at::ScalarType type) {
  const Tensor input = x.to(type);
  std::vector<Tensor> results;
  for (const Tensor& weight : weights) results.push_back(at::linear(input, weight.to(type)));
  return results;
}

void SoftmaxLoss(const Tensor& targets, double scale, Tensor& logits, Tensor& losses) {
  const Tensor ignored = targets.lt(0).unsqueeze(1), target = targets.clamp_min(0).unsqueeze(1);
  const Tensor wide = logits.to(losses.scalar_type());
  const Tensor lse = wide.logsumexp(1, /*keepdim=*/true);
  losses.copy_((lse - wide.gather(1, target)).masked_fill_(ignored, 0).squeeze(1));
  logits.copy_((wide - lse)
                   .exp_()
                   .scatter_add_(1, target, at::full_like(lse, -1))
                   .mul_(scale)
                   .masked_fill_(ignored, 0));
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("_composite_layers(bool on) -> ()", [](bool on) { everywhere = on; });
}

}  // namespace lattice::composite
