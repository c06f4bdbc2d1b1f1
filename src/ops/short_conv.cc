#include "ops/short_conv.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dense/short_conv.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The problem over tensors that must outlive it; `weight` is [W,C].
template <typename T>
kernels::ShortConv<T> Problem(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              const at::Tensor& past) {
  kernels::ShortConv<T> p;
  p.batch = x.size(0);
  p.time = x.size(1);
  p.channels = x.size(2);
  p.width = weight.size(0);
  p.weight = weight.const_data_ptr<T>();
  p.bias = bias.const_data_ptr<T>();
  p.x = x.const_data_ptr<T>();
  p.past = past.defined() ? past.const_data_ptr<T>() : nullptr;
  return p;
}

class CausalConvFunction : public torch::autograd::Function<CausalConvFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& weight_in,
                            const at::Tensor& bias_in, const std::optional<at::Tensor>& past_in) {
    const at::Tensor x = x_in.contiguous(), weight = weight_in.t().contiguous(), bias = bias_in.contiguous();
    const at::Tensor past = past_in.has_value() ? past_in->contiguous() : at::Tensor();
    at::Tensor y = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_short_conv", [&] {
      const auto p = Problem<scalar_t>(x, weight, bias, past);
      scalar_t* out = y.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, p.Tiles(), 1,
                       [&](int64_t first, int64_t last) { kernels::ShortConvForward(p, out, first, last); });
    });
    ctx->save_for_backward({x, weight, bias, past});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &past = saved[3];
    const at::Tensor dy = grads[0].contiguous();
    at::Tensor dx = at::empty_like(x), dweight, dbias;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_short_conv_backward", [&] {
      const auto p = Problem<scalar_t>(x, weight, bias, past);
      at::Tensor partial = at::empty({p.Tiles(), p.width + 1, p.channels}, x.options());
      const scalar_t* dy_data = dy.const_data_ptr<scalar_t>();
      scalar_t *dx_data = dx.mutable_data_ptr<scalar_t>(), *sums = partial.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, p.Tiles(), 1, [&](int64_t first, int64_t last) {
        kernels::ShortConvBackward(p, dy_data, dx_data, sums, first, last);
      });
      const at::Tensor total = SumTiles(partial);
      dweight = total.narrow(0, 0, p.width).t();
      dbias = total.select(0, p.width);
    });
    return {dx, dweight, dbias, at::Tensor()};
  }
};

}  // namespace

at::Tensor CausalConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const std::optional<at::Tensor>& past) {
  RequireCpu("[causal_conv]", {x, weight, bias, past.value_or(at::Tensor())});
  return CausalConvFunction::apply(x, weight, bias, past);
}

at::Tensor NextPast(const at::Tensor& x, int64_t width, const std::optional<at::Tensor>& past) {
  const int64_t T = x.size(1), keep = width - 1;
  const at::Tensor now = x.detach();
  if (T >= keep) return now.narrow(1, T - keep, keep).clone();
  const at::Tensor before = past.has_value() ? *past : at::zeros({x.size(0), keep, x.size(2)}, now.options());
  return at::cat({before.narrow(1, T, keep - T), now}, 1);
}

}  // namespace lattice
