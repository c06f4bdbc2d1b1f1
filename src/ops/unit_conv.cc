#include "ops/unit_conv.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dense/unit_conv.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The problem over tensors that must outlive it: x, past (may be undefined), weights [W,C] and biases.
template <typename S>
kernels::UnitConv<S> Problem(const variable_list& t, int64_t size, double eps) {
  const at::Tensor &x = t[0], &past = t[1];
  kernels::UnitConv<S> p;
  p.batch = x.size(0);
  p.time = x.size(1);
  p.channels = x.size(2);
  p.width = t[2].size(0);
  p.size = size;
  p.eps = static_cast<float>(eps);
  p.x = DataOf<S>(x);
  p.past = past.defined() ? DataOf<S>(past) : nullptr;
  for (size_t f = 0; f < 2; ++f) {
    p.weight[f] = t[2 + 2 * f].const_data_ptr<float>();
    p.bias[f] = t[3 + 2 * f].const_data_ptr<float>();
  }
  return p;
}

class UnitConvFunction : public torch::autograd::Function<UnitConvFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x,
                               const std::optional<at::Tensor>& past, const at::Tensor& weight1,
                               const at::Tensor& bias1, const at::Tensor& weight2, const at::Tensor& bias2,
                               int64_t size, double eps) {
    const variable_list inputs = {
        x.contiguous(),           past.has_value() ? past->to(x.scalar_type()).contiguous() : at::Tensor(),
        weight1.t().contiguous(), bias1.contiguous(),
        weight2.t().contiguous(), bias2.contiguous()};
    const variable_list results = {at::empty(x.sizes(), weight1.options()),
                                   at::empty(x.sizes(), weight1.options())};
    WithFloatStorage(x.scalar_type(), [&]<typename S>(S) {
      auto p = Problem<S>(inputs, size, eps);
      for (size_t f = 0; f < 2; ++f) p.y[f] = results[f].mutable_data_ptr<float>();
      at::parallel_for(0, p.Tiles(), 1,
                       [&](int64_t first, int64_t last) { kernels::UnitConvForward(p, first, last); });
    });
    ctx->save_for_backward(inputs);
    ctx->saved_data["size"] = size;
    ctx->saved_data["eps"] = eps;
    return results;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list inputs = ctx->get_saved_variables();
    const at::Tensor& x = inputs[0];
    for (at::Tensor& g : grads) g = g.contiguous();
    const at::Tensor dx = at::empty_like(x);
    at::Tensor sums;
    WithFloatStorage(x.scalar_type(), [&]<typename S>(S) {
      auto p = Problem<S>(inputs, ctx->saved_data["size"].toInt(), ctx->saved_data["eps"].toDouble());
      const at::Tensor partial = at::empty({p.Tiles(), 2, p.width + 1, p.channels}, inputs[2].options());
      for (size_t f = 0; f < 2; ++f) p.dy[f] = grads[f].const_data_ptr<float>();
      p.dx = MutableDataOf<S>(dx);
      p.partial = partial.mutable_data_ptr<float>();
      at::parallel_for(0, p.Tiles(), 1,
                       [&](int64_t first, int64_t last) { kernels::UnitConvBackward(p, first, last); });
      sums = SumTiles(partial);
    });
    const int64_t width = inputs[2].size(0);
    const auto weight = [&](int64_t f) { return sums[f].narrow(0, 0, width).t(); };
    const auto bias = [&](int64_t f) { return sums[f][width]; };
    return {dx, at::Tensor(), weight(0), bias(0), weight(1), bias(1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> UnitConvs(const at::Tensor& x, const ConvFilter& first,
                                            const ConvFilter& second, int64_t size, double eps,
                                            const std::optional<at::Tensor>& past) {
  TORCH_CHECK_VALUE(x.dim() == 3 && size > 0 && x.size(2) % size == 0,
                    "[unit_convs] x must be [B,T,C] with C a multiple of ", size, ", got ", x.sizes());
  RequireCpu("[unit_convs]",
             {x, past.value_or(at::Tensor()), first.weight, first.bias, second.weight, second.bias});
  const variable_list y =
      UnitConvFunction::apply(x, past, first.weight, first.bias, second.weight, second.bias, size, eps);
  return {y[0], y[1]};
}

}  // namespace lattice
