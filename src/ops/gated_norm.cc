#include "ops/gated_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dense/gated_norm.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename S>
kernels::GatedNorm<S> Problem(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                              const at::Tensor& bias, double eps) {
  kernels::GatedNorm<S> p;
  p.width = x.size(-1);
  p.rows = x.numel() / p.width;
  p.eps = static_cast<float>(eps);
  p.weight = weight.const_data_ptr<float>();
  p.bias = bias.const_data_ptr<float>();
  p.x = x.const_data_ptr<float>();
  p.gate = DataOf<S>(gate);
  return p;
}

class GatedNormFunction : public torch::autograd::Function<GatedNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& gate_in,
                            const at::Tensor& weight_in, const at::Tensor& bias_in, double eps) {
    const at::Tensor x = x_in.contiguous(), gate = gate_in.contiguous(), weight = weight_in.contiguous(),
                     bias = bias_in.contiguous();
    const at::Tensor y = at::empty_like(gate);
    WithFloatStorage(gate.scalar_type(), [&]<typename S>(S) {
      auto p = Problem<S>(x, gate, weight, bias, eps);
      p.y = MutableDataOf<S>(y);
      at::parallel_for(0, p.Tiles(), 1,
                       [&](int64_t first, int64_t last) { kernels::GatedNormForward(p, first, last); });
    });
    ctx->save_for_backward({x, gate, weight, bias});
    ctx->saved_data["eps"] = eps;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], dy = grads[0].contiguous();
    const at::Tensor dx = at::empty_like(x), dgate = at::empty_like(gate);
    at::Tensor sums;
    WithFloatStorage(gate.scalar_type(), [&]<typename S>(S) {
      auto p = Problem<S>(x, gate, saved[2], saved[3], ctx->saved_data["eps"].toDouble());
      const at::Tensor partial = at::empty({p.Tiles(), 2, p.width}, x.options());
      p.dy = DataOf<S>(dy);
      p.dx = dx.mutable_data_ptr<float>();
      p.dgate = MutableDataOf<S>(dgate);
      p.partial = partial.mutable_data_ptr<float>();
      at::parallel_for(0, p.Tiles(), 1,
                       [&](int64_t first, int64_t last) { kernels::GatedNormBackward(p, first, last); });
      sums = SumTiles(partial);
    });
    return {dx, dgate, sums[0], sums[1], at::Tensor()};
  }
};

}  // namespace

at::Tensor GatedLayerNorm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                          const at::Tensor& bias, double eps) {
  TORCH_CHECK_VALUE(x.sizes() == gate.sizes(), "[gated_layer_norm] x and gate must have one shape, got ",
                    x.sizes(), " and ", gate.sizes());
  if (x.scalar_type() != at::kFloat) {
    return at::gelu(gate) * at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
  }
  RequireCpu("[gated_layer_norm]", {x, gate, weight, bias});
  return GatedNormFunction::apply(x, gate, weight, bias, eps);
}

}  // namespace lattice
