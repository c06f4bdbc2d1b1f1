#include "ops/row_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/row_norm.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
kernels::RowNorm<T> Problem(const at::Tensor& x, const at::Tensor& weight, double share, double eps) {
  kernels::RowNorm<T> p;
  p.width = x.size(-1);
  p.rows = x.numel() / p.width;
  p.share = static_cast<T>(share);
  p.eps = static_cast<T>(eps);
  p.x = x.const_data_ptr<T>();
  p.weight = weight.defined() ? weight.const_data_ptr<T>() : nullptr;
  return p;
}

class RowNormFunction : public torch::autograd::Function<RowNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in,
                            const std::optional<at::Tensor>& weight_in, double share, double eps) {
    const at::Tensor x = x_in.contiguous();
    const at::Tensor weight = weight_in.has_value() ? weight_in->contiguous() : at::Tensor();
    at::Tensor y = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_row_norm", [&] {
      const auto p = Problem<scalar_t>(x, weight, share, eps);
      scalar_t* out = y.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, p.Tiles(), 1,
                       [&](int64_t first, int64_t last) { kernels::RowNormForward(p, out, first, last); });
    });
    ctx->save_for_backward({x, weight});
    ctx->saved_data["share"] = share;
    ctx->saved_data["eps"] = eps;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor dy = grads[0].contiguous();
    at::Tensor dx = at::empty_like(x), dweight;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_row_norm_backward", [&] {
      const auto p = Problem<scalar_t>(x, weight, ctx->saved_data["share"].toDouble(),
                                       ctx->saved_data["eps"].toDouble());
      const bool weighted = weight.defined();
      at::Tensor partial = at::empty({weighted ? p.Tiles() : 0, p.width}, x.options());
      const scalar_t* dy_data = dy.const_data_ptr<scalar_t>();
      scalar_t *dx_data = dx.mutable_data_ptr<scalar_t>(), *sums = partial.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, p.Tiles(), 1, [&](int64_t first, int64_t last) {
        kernels::RowNormBackward(p, dy_data, dx_data, sums, first, last);
      });
      if (!weighted) return;
      // Tile by tile, so that the sum does not depend on the number of threads.
      dweight = at::zeros({p.width}, x.options());
      for (int64_t tile = 0; tile < p.Tiles(); ++tile) dweight.add_(partial[tile]);
    });
    return {dx, dweight, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return RowNormFunction::apply(x, weight, 1.0 / static_cast<double>(x.size(-1)), eps);
}

at::Tensor UnitVectors(const at::Tensor& x, double eps) {
  return RowNormFunction::apply(x, std::optional<at::Tensor>(), 1.0, eps);
}

}  // namespace lattice
