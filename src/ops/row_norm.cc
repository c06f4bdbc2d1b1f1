#include "ops/row_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/dense/row_norm.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
void Describe(const at::Tensor& x, const at::Tensor& weight, double share, double eps,
              kernels::RowNorm<T>& p) {
  p.width = x.size(-1);
  p.rows = x.numel() / p.width;
  p.share = static_cast<T>(share);
  p.eps = static_cast<T>(eps);
  p.weight = weight.defined() ? weight.const_data_ptr<T>() : nullptr;
}

// x as the kernel takes it; undefined: absent.
template <typename T>
kernels::ConstStored<T> StoredOf(const at::Tensor& x) {
  if (!x.defined()) return {};
  if (x.scalar_type() == at::kBFloat16) return {nullptr, DataOf<uint16_t>(x)};
  return {x.const_data_ptr<T>(), nullptr};
}

class RowNormFunction : public torch::autograd::Function<RowNormFunction> {
 public:
  // The sum x + delta (where there is a delta) and the norm, which is rounded to bfloat16 on demand.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x_in,
                               const std::optional<at::Tensor>& delta_in,
                               const std::optional<at::Tensor>& weight_in, double share, double eps,
                               bool bf16) {
    const at::Tensor x = x_in.contiguous();
    const at::Tensor delta = delta_in.has_value() ? delta_in->contiguous() : at::Tensor();
    const at::Tensor weight = weight_in.has_value() ? weight_in->contiguous() : at::Tensor();
    const at::Tensor sum = delta.defined() ? at::empty_like(x) : x;
    at::Tensor y = at::empty_like(x, x.options().dtype(bf16 ? at::kBFloat16 : x.scalar_type()));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_row_norm", [&] {
      kernels::RowNormForward<scalar_t> p;
      Describe(x, weight, share, eps, p);
      p.x = x.const_data_ptr<scalar_t>();
      p.delta = StoredOf<scalar_t>(delta);
      if (delta.defined()) p.sum = sum.mutable_data_ptr<scalar_t>();
      if (bf16) {
        p.y.bf16 = MutableDataOf<uint16_t>(y);
      } else {
        p.y.wide = y.mutable_data_ptr<scalar_t>();
      }
      at::parallel_for(0, p.Tiles(), 1, [&](int64_t first, int64_t last) { kernels::Run(p, first, last); });
    });
    ctx->save_for_backward({sum, weight});
    ctx->saved_data["share"] = share;
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["delta"] = delta.defined() ? delta.scalar_type() : at::ScalarType::Undefined;
    ctx->set_materialize_grads(false);
    if (!delta.defined()) return {y};
    return {sum, y};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &sum = saved[0], &weight = saved[1];
    const auto delta = ctx->saved_data["delta"].toScalarType();
    const at::Tensor dsum = grads.size() == 2 && grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const at::Tensor dy = grads.back().defined() ? grads.back().contiguous() : at::zeros_like(sum);
    at::Tensor dx = at::empty_like(sum), ddelta, dweight;
    if (delta == at::kBFloat16) ddelta = at::empty_like(sum, sum.options().dtype(delta));
    AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "lattice_row_norm_backward", [&] {
      kernels::RowNormBackward<scalar_t> p;
      Describe(sum, weight, ctx->saved_data["share"].toDouble(), ctx->saved_data["eps"].toDouble(), p);
      p.sum = sum.const_data_ptr<scalar_t>();
      if (dsum.defined()) p.dsum = dsum.const_data_ptr<scalar_t>();
      p.dy = StoredOf<scalar_t>(dy);
      p.dx = dx.mutable_data_ptr<scalar_t>();
      if (ddelta.defined()) p.dx_bf16 = MutableDataOf<uint16_t>(ddelta);
      const at::Tensor partial = at::empty({weight.defined() ? p.Tiles() : 0, p.width}, sum.options());
      p.partial = partial.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, p.Tiles(), 1, [&](int64_t first, int64_t last) { kernels::Run(p, first, last); });
      if (weight.defined()) dweight = SumTiles(partial);
    });
    if (delta != at::ScalarType::Undefined && !ddelta.defined()) ddelta = dx;
    return {dx, ddelta, dweight, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

double Mean(const at::Tensor& x) { return 1.0 / static_cast<double>(x.size(-1)); }

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps, bool bf16) {
  RequireCpu("[rms_norm]", {x, weight});
  return RowNormFunction::apply(x, std::optional<at::Tensor>(), weight, Mean(x), eps, bf16)[0];
}

std::pair<at::Tensor, at::Tensor> AddRmsNorm(const at::Tensor& x, const at::Tensor& delta,
                                             const at::Tensor& weight, double eps, bool bf16) {
  TORCH_CHECK_VALUE(x.sizes() == delta.sizes(), "[add_rms_norm] x and delta must have one shape, got ",
                    x.sizes(), " and ", delta.sizes());
  RequireCpu("[add_rms_norm]", {x, delta, weight});
  variable_list results = RowNormFunction::apply(x, delta, weight, Mean(x), eps, bf16);
  return {results[0], results[1]};
}

at::Tensor UnitVectors(const at::Tensor& x, double eps) {
  RequireCpu("[unit_vectors]", {x});
  return RowNormFunction::apply(x, std::optional<at::Tensor>(), std::optional<at::Tensor>(), 1.0, eps,
                                false)[0];
}

}  // namespace lattice
