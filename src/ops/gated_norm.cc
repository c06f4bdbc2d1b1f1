// lattice::gated_layer_norm: schema, CPU kernels over rows, shapes and gradient.
#include "ops/gated_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include "kernels/dense/gated_norm.h"
#include "ops/composite.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

// dx, dgate, dweight, dbias
using GatedNormGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using GatedNormSignature = at::Tensor(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                                      const at::Tensor& bias, double eps);
using GatedNormBackwardSignature = GatedNormGradients(const at::Tensor& dy, const at::Tensor& x,
                                                      const at::Tensor& gate, const at::Tensor& weight,
                                                      const at::Tensor& bias, double eps);

template <typename S>
kernels::GatedNorm<S> GatedNormProblem(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
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

at::Tensor GatedNormCpu(const at::Tensor& x_in, const at::Tensor& gate_in, const at::Tensor& weight_in,
                        const at::Tensor& bias_in, double eps) {
  const at::Tensor x = x_in.contiguous(), gate = gate_in.contiguous(), weight = weight_in.contiguous(),
                   bias = bias_in.contiguous();
  const at::Tensor y = NewLike(gate);
  WithFloatStorage(gate.scalar_type(), [&]<typename S>(S) {
    auto p = GatedNormProblem<S>(x, gate, weight, bias, eps);
    p.y = MutableDataOf<S>(y);
    at::parallel_for(0, p.Tiles(), 1,
                     [&](int64_t first, int64_t last) { kernels::GatedNormForward(p, first, last); });
  });
  return y;
}

GatedNormGradients GatedNormBackwardCpu(const at::Tensor& dy_in, const at::Tensor& x_in,
                                        const at::Tensor& gate_in, const at::Tensor& weight_in,
                                        const at::Tensor& bias_in, double eps) {
  const at::Tensor x = x_in.contiguous(), gate = gate_in.contiguous(), weight = weight_in.contiguous(),
                   bias = bias_in.contiguous(), dy = dy_in.contiguous();
  const at::Tensor dx = NewLike(x), dgate = NewLike(gate);
  at::Tensor sums;
  WithFloatStorage(gate.scalar_type(), [&]<typename S>(S) {
    auto p = GatedNormProblem<S>(x, gate, weight, bias, eps);
    const at::Tensor partial = at::empty({p.Tiles(), 2, p.width}, x.options());
    p.dy = DataOf<S>(dy);
    p.dx = dx.mutable_data_ptr<float>();
    p.dgate = MutableDataOf<S>(dgate);
    p.partial = partial.mutable_data_ptr<float>();
    at::parallel_for(0, p.Tiles(), 1,
                     [&](int64_t first, int64_t last) { kernels::GatedNormBackward(p, first, last); });
    sums = SumTiles(partial);
  });
  return {dx, dgate, sums[0].clone(), sums[1].clone()};
}

at::Tensor GatedNormShape(const at::Tensor&, const at::Tensor& gate, const at::Tensor&, const at::Tensor&,
                          double) {
  return NewLike(gate);
}

GatedNormGradients GatedNormBackwardShape(const at::Tensor&, const at::Tensor& x, const at::Tensor& gate,
                                          const at::Tensor& weight, const at::Tensor& bias, double) {
  return {NewLike(x), NewLike(gate), NewLike(weight), NewLike(bias)};
}

at::Tensor GatedNormAutograd(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                             const at::Tensor& bias, double eps) {
  static const auto op = Operator<GatedNormSignature>("lattice::_gated_layer_norm");
  const at::Tensor y = BelowAutograd(op, x, gate, weight, bias, eps);
  const auto backward = [eps](const variable_list& in, const variable_list& grads) -> variable_list {
    static const auto reverse = Operator<GatedNormBackwardSignature>("lattice::_gated_layer_norm_backward");
    const auto [dx, dgate, dweight, dbias] = reverse.call(grads[0], in[0], in[1], in[2], in[3], eps);
    return {dx, dgate, dweight, dbias};
  };
  const variable_list inputs = {x, gate, weight, bias};
  DifferentiateLayer("[gated_layer_norm]", inputs, {y}, inputs, backward);
  return y;
}

}  // namespace

at::Tensor GatedLayerNorm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                          const at::Tensor& bias, double eps) {
  TORCH_CHECK_VALUE(x.sym_sizes() == gate.sym_sizes(),
                    "[gated_layer_norm] x and gate must have one shape, got ", x.sym_sizes(), " and ",
                    gate.sym_sizes());
  RequireOneDevice("[gated_layer_norm]", {x, gate, weight, bias});
  if (x.scalar_type() != at::kFloat || composite::Computes(x))
    return composite::GatedLayerNorm(x, gate, weight, bias, eps);
  static const auto op = Operator<GatedNormSignature>("lattice::_gated_layer_norm");
  return op.call(x, gate, weight, bias, eps);
}

#define LATTICE_GATED_NORM_SCHEMA "Tensor x, Tensor gate, Tensor weight, Tensor bias, float eps"

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("gated_layer_norm(" LATTICE_GATED_NORM_SCHEMA ") -> Tensor", GatedLayerNorm);
  m.def("_gated_layer_norm(" LATTICE_GATED_NORM_SCHEMA ") -> Tensor");
  m.def("_gated_layer_norm_backward(Tensor dy, " LATTICE_GATED_NORM_SCHEMA
        ") -> (Tensor dx, Tensor dgate, Tensor dweight, Tensor dbias)");
}
TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_gated_layer_norm", GatedNormCpu);
  m.impl("_gated_layer_norm_backward", GatedNormBackwardCpu);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_gated_layer_norm", GatedNormShape);
  m.impl("_gated_layer_norm_backward", GatedNormBackwardShape);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_gated_layer_norm", GatedNormAutograd);
  m.impl("_gated_layer_norm_backward", WithoutDerivative());
}

}  // namespace lattice
