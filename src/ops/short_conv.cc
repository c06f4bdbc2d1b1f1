// lattice::causal_conv: schema, CPU kernels over tiles of sequences, shapes and gradient.
#include "ops/short_conv.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "kernels/dense/short_conv.h"
#include "ops/composite.h"
#include "ops/conv_tiles.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using ConvGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // dx, dweight, dbias

#define LATTICE_CONV_PARAMETERS                                                                      \
  const at::Tensor &x, const at::Tensor &weight, const at::Tensor &bias, const OptionalTensor &past, \
      const OptionalTensor &cu_seqlens
using ConvSignature = at::Tensor(LATTICE_CONV_PARAMETERS);
using ConvBackwardSignature = ConvGradients(const at::Tensor& dy, LATTICE_CONV_PARAMETERS);

// A convolution over contiguous tensors, which the problems of its sequences point into.
struct ConvTensors {
  at::Tensor x, weight, bias, past;  // the weight is [W,C]
  std::vector<SequenceGroup> groups;

  template <typename T>
  std::vector<kernels::ShortConv<T>> Problems() const {
    std::vector<kernels::ShortConv<T>> problems;
    const int64_t C = x.size(2), W = weight.size(0);
    for (const SequenceGroup& s : groups) {
      kernels::ShortConv<T>& p = problems.emplace_back();
      p.batch = s.batch;
      p.time = s.time;
      p.channels = C;
      p.width = W;
      p.weight = weight.const_data_ptr<T>();
      p.bias = bias.const_data_ptr<T>();
      p.x = x.const_data_ptr<T>() + s.row * C;
      p.past = past.defined() ? past.const_data_ptr<T>() + s.sequence * (W - 1) * C : nullptr;
    }
    return problems;
  }
};

ConvTensors ConvTensorsOf(LATTICE_CONV_PARAMETERS) {
  return {x.contiguous(), weight.t().contiguous(), bias.contiguous(), Contiguous(past),
          SequenceGroups("[causal_conv]", x, cu_seqlens)};
}

at::Tensor ConvForward(LATTICE_CONV_PARAMETERS) {
  const ConvTensors in = ConvTensorsOf(x, weight, bias, past, cu_seqlens);
  at::Tensor y = NewLike(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_short_conv", [&] {
    const auto problems = in.Problems<scalar_t>();
    scalar_t* out = y.mutable_data_ptr<scalar_t>();
    OverTiles(problems, [&](size_t i, int64_t, int64_t first, int64_t last) {
      kernels::ShortConvForward(problems[i], out + in.groups[i].row * x.size(2), first, last);
    });
  });
  return y;
}

ConvGradients ConvBackward(const at::Tensor& dy_in, LATTICE_CONV_PARAMETERS) {
  const ConvTensors in = ConvTensorsOf(x, weight, bias, past, cu_seqlens);
  const at::Tensor dy = dy_in.contiguous();
  at::Tensor dx = NewLike(x), dweight, dbias;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lattice_short_conv_backward", [&] {
    const auto problems = in.Problems<scalar_t>();
    const int64_t C = x.size(2), W = in.weight.size(0);
    at::Tensor partial = at::empty({TilesOf(problems), W + 1, C}, x.options());
    const scalar_t* dy_data = dy.const_data_ptr<scalar_t>();
    scalar_t *dx_data = dx.mutable_data_ptr<scalar_t>(), *sums = partial.mutable_data_ptr<scalar_t>();
    OverTiles(problems, [&](size_t i, int64_t before, int64_t first, int64_t last) {
      const int64_t at = in.groups[i].row * C;
      kernels::ShortConvBackward(problems[i], dy_data + at, dx_data + at, sums + before * (W + 1) * C, first,
                                 last);
    });
    const at::Tensor total = SumTiles(partial);
    dweight = total.narrow(0, 0, W).t().contiguous();
    dbias = total.select(0, W).clone();
  });
  return {dx, dweight, dbias};
}

at::Tensor ConvShape(const at::Tensor& x, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                     const OptionalTensor&) {
  return NewLike(x);
}

ConvGradients ConvBackwardShape(const at::Tensor&, const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& bias, const OptionalTensor&, const OptionalTensor&) {
  return {NewLike(x), NewLike(weight), NewLike(bias)};
}

at::Tensor ConvAutograd(LATTICE_CONV_PARAMETERS) {
  static const auto op = Operator<ConvSignature>("lattice::_causal_conv");
  const at::Tensor y = BelowAutograd(op, x, weight, bias, past, cu_seqlens);
  const auto backward = [](const variable_list& in, const variable_list& grads) -> variable_list {
    static const auto reverse = Operator<ConvBackwardSignature>("lattice::_causal_conv_backward");
    const auto [dx, dweight, dbias] =
        reverse.call(grads[0], in[0], in[1], in[2], IfDefined(in[3]), IfDefined(in[4]));
    return {dx, dweight, dbias};
  };
  DifferentiateLayer("[causal_conv]", {x, weight, bias}, {y},
                     {x, weight, bias, past.value_or(at::Tensor()), cu_seqlens.value_or(at::Tensor())},
                     backward);
  return y;
}

}  // namespace

at::Tensor CausalConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const std::optional<at::Tensor>& past, const std::optional<at::Tensor>& cu_seqlens) {
  RequireOneDevice("[causal_conv]", {x, weight, bias, past});
  static const auto op = Operator<ConvSignature>("lattice::_causal_conv");
  CheckConv("[causal_conv]", x, weight, bias, past, cu_seqlens);
  if (composite::Computes(x))
    return composite::CausalConv("[causal_conv]", x, weight, bias, past, cu_seqlens);
  if (!WantsPastGradient("[causal_conv]", past, cu_seqlens))
    return op.call(x, weight, bias, past, cu_seqlens);
  const c10::SymInt earlier = past->sym_size(1);
  return op.call(at::cat({*past, x}, 1), weight, bias, std::nullopt, std::nullopt)
      .narrow_symint(1, earlier, x.sym_size(1));
}

at::Tensor NextPast(const at::Tensor& x, int64_t width, const std::optional<at::Tensor>& past) {
  const int64_t T = x.size(1), keep = width - 1;
  if (T >= keep) return x.narrow(1, T - keep, keep).clone();
  const at::Tensor before = past.has_value() ? *past : at::zeros({x.size(0), keep, x.size(2)}, x.options());
  return at::cat({before.narrow(1, T, keep - T), x}, 1);
}

#define LATTICE_CONV_SCHEMA "Tensor x, Tensor weight, Tensor bias, Tensor? past=None, Tensor? cu_seqlens=None"

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("causal_conv(" LATTICE_CONV_SCHEMA ") -> Tensor", CausalConv);
  m.def("_causal_conv(" LATTICE_CONV_SCHEMA ") -> Tensor");
  m.def("_causal_conv_backward(Tensor dy, " LATTICE_CONV_SCHEMA
        ") -> (Tensor dx, Tensor dweight, Tensor dbias)");
}
TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_causal_conv", ConvForward);
  m.impl("_causal_conv_backward", ConvBackward);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_causal_conv", ConvShape);
  m.impl("_causal_conv_backward", ConvBackwardShape);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_causal_conv", ConvAutograd);
  m.impl("_causal_conv_backward", WithoutDerivative());
}

}  // namespace lattice
