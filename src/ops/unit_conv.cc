// lattice::unit_convs: schema, CPU kernels over tiles of sequences, shapes and gradient.
#include "ops/unit_conv.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "kernels/dense/unit_conv.h"
#include "ops/composite.h"
#include "ops/conv_tiles.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using UnitConvResult = std::tuple<at::Tensor, at::Tensor>;
// dx, and of each filter the gradients of weight and bias
using UnitConvGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

#define LATTICE_UNIT_CONV_PARAMETERS                                                                  \
  const at::Tensor &x, const at::Tensor &weight1, const at::Tensor &bias1, const at::Tensor &weight2, \
      const at::Tensor &bias2, int64_t size, double eps, const OptionalTensor &past,                  \
      const OptionalTensor &cu_seqlens
using UnitConvSignature = UnitConvResult(LATTICE_UNIT_CONV_PARAMETERS);
using UnitConvBackwardSignature = UnitConvGradients(const at::Tensor& dy1, const at::Tensor& dy2,
                                                    LATTICE_UNIT_CONV_PARAMETERS);

void CheckUnitConv(LATTICE_UNIT_CONV_PARAMETERS) {
  CheckConv("[unit_convs]", x, weight1, bias1, past, cu_seqlens);
  CheckConv("[unit_convs]", x, weight2, bias2, past, cu_seqlens);
  TORCH_CHECK_VALUE(size > 0 && x.sym_size(2) % size == 0 && eps > 0,
                    "[unit_convs] x must be [B,T,C] with C a multiple of ", size, ", got ", x.sym_sizes());
  TORCH_CHECK_VALUE(weight1.sym_sizes() == weight2.sym_sizes(),
                    "[unit_convs] both filters must have one shape, got ", weight1.sym_sizes(), " and ",
                    weight2.sym_sizes());
}

// Contiguous tensors, which the problems of the sequences point into; weights are [W,C].
struct UnitConvTensors {
  at::Tensor x, past, weight[2], bias[2];
  int64_t size;
  double eps;
  std::vector<SequenceGroup> groups;

  template <typename S>
  std::vector<kernels::UnitConv<S>> Problems() const {
    std::vector<kernels::UnitConv<S>> problems;
    const int64_t C = x.size(2), W = weight[0].size(0);
    for (const SequenceGroup& s : groups) {
      kernels::UnitConv<S>& p = problems.emplace_back();
      p.batch = s.batch;
      p.time = s.time;
      p.channels = C;
      p.width = W;
      p.size = size;
      p.eps = static_cast<float>(eps);
      p.x = DataOf<S>(x) + s.row * C;
      p.past = past.defined() ? DataOf<S>(past) + s.sequence * (W - 1) * C : nullptr;
      for (size_t f = 0; f < 2; ++f) {
        p.weight[f] = weight[f].const_data_ptr<float>();
        p.bias[f] = bias[f].const_data_ptr<float>();
      }
    }
    return problems;
  }
};

UnitConvTensors UnitConvTensorsOf(LATTICE_UNIT_CONV_PARAMETERS) {
  return {x.contiguous(),
          past.has_value() ? past->to(x.scalar_type()).contiguous() : at::Tensor(),
          {weight1.t().contiguous(), weight2.t().contiguous()},
          {bias1.contiguous(), bias2.contiguous()},
          size,
          eps,
          SequenceGroups("[unit_convs]", x, cu_seqlens)};
}

UnitConvResult UnitConvForward(LATTICE_UNIT_CONV_PARAMETERS) {
  const UnitConvTensors in =
      UnitConvTensorsOf(x, weight1, bias1, weight2, bias2, size, eps, past, cu_seqlens);
  const at::Tensor results[] = {NewLike(x, at::kFloat), NewLike(x, at::kFloat)};
  WithFloatStorage(x.scalar_type(), [&]<typename S>(S) {
    auto problems = in.Problems<S>();
    for (size_t i = 0; i < problems.size(); ++i) {
      for (size_t f = 0; f < 2; ++f)
        problems[i].y[f] = results[f].mutable_data_ptr<float>() + in.groups[i].row * x.size(2);
    }
    OverTiles(problems, [&](size_t i, int64_t, int64_t first, int64_t last) {
      kernels::UnitConvForward(problems[i], first, last);
    });
  });
  return {results[0], results[1]};
}

UnitConvGradients UnitConvBackward(const at::Tensor& dy1, const at::Tensor& dy2,
                                   LATTICE_UNIT_CONV_PARAMETERS) {
  const UnitConvTensors in =
      UnitConvTensorsOf(x, weight1, bias1, weight2, bias2, size, eps, past, cu_seqlens);
  const at::Tensor dy[] = {dy1.contiguous(), dy2.contiguous()};
  const at::Tensor dx = NewLike(x);
  const int64_t C = x.size(2), W = in.weight[0].size(0);
  at::Tensor sums;
  WithFloatStorage(x.scalar_type(), [&]<typename S>(S) {
    auto problems = in.Problems<S>();
    const at::Tensor partial = at::empty({TilesOf(problems), 2, W + 1, C}, in.weight[0].options());
    float* next = partial.mutable_data_ptr<float>();
    for (size_t i = 0; i < problems.size(); ++i) {
      auto& p = problems[i];
      const int64_t at = in.groups[i].row * C;
      for (size_t f = 0; f < 2; ++f) p.dy[f] = dy[f].const_data_ptr<float>() + at;
      p.dx = MutableDataOf<S>(dx) + at;
      p.partial = next;
      next += p.Tiles() * 2 * (W + 1) * C;
    }
    OverTiles(problems, [&](size_t i, int64_t, int64_t first, int64_t last) {
      kernels::UnitConvBackward(problems[i], first, last);
    });
    sums = SumTiles(partial);
  });
  const auto weight = [&](int64_t f) { return sums[f].narrow(0, 0, W).t().contiguous(); };
  const auto bias = [&](int64_t f) { return sums[f][W].clone(); };
  return {dx, weight(0), bias(0), weight(1), bias(1)};
}

UnitConvResult UnitConvShape(const at::Tensor& x, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                             const at::Tensor&, int64_t, double, const OptionalTensor&,
                             const OptionalTensor&) {
  return {NewLike(x, at::kFloat), NewLike(x, at::kFloat)};
}

UnitConvGradients UnitConvBackwardShape(const at::Tensor&, const at::Tensor&, const at::Tensor& x,
                                        const at::Tensor& weight1, const at::Tensor& bias1,
                                        const at::Tensor& weight2, const at::Tensor& bias2, int64_t, double,
                                        const OptionalTensor&, const OptionalTensor&) {
  return {NewLike(x), NewLike(weight1), NewLike(bias1), NewLike(weight2), NewLike(bias2)};
}

UnitConvResult UnitConvAutograd(LATTICE_UNIT_CONV_PARAMETERS) {
  static const auto op = Operator<UnitConvSignature>("lattice::_unit_convs");
  const auto [y1, y2] = BelowAutograd(op, x, weight1, bias1, weight2, bias2, size, eps, past, cu_seqlens);
  const auto backward = [size, eps](const variable_list& in, const variable_list& grads) -> variable_list {
    static const auto reverse = Operator<UnitConvBackwardSignature>("lattice::_unit_convs_backward");
    const auto [dx, dweight1, dbias1, dweight2, dbias2] = reverse.call(
        grads[0], grads[1], in[0], in[1], in[2], in[3], in[4], size, eps, IfDefined(in[5]), IfDefined(in[6]));
    return {dx, dweight1, dbias1, dweight2, dbias2};
  };
  const variable_list inputs = {x, weight1, bias1, weight2, bias2};
  variable_list saved = inputs;
  saved.insert(saved.end(), {past.value_or(at::Tensor()), cu_seqlens.value_or(at::Tensor())});
  DifferentiateLayer("[unit_convs]", inputs, {y1, y2}, saved, backward);
  return {y1, y2};
}

UnitConvResult UnitConvsOp(LATTICE_UNIT_CONV_PARAMETERS) {
  const auto [a, b] = UnitConvs(x, {weight1, bias1}, {weight2, bias2}, size, eps, past, cu_seqlens);
  return {a, b};
}

}  // namespace

std::pair<at::Tensor, at::Tensor> UnitConvs(const at::Tensor& x, const ConvFilter& first,
                                            const ConvFilter& second, int64_t size, double eps,
                                            const std::optional<at::Tensor>& past,
                                            const std::optional<at::Tensor>& cu_seqlens) {
  RequireOneDevice("[unit_convs]", {x, past, first.weight, first.bias, second.weight, second.bias});
  CheckUnitConv(x, first.weight, first.bias, second.weight, second.bias, size, eps, past, cu_seqlens);
  if (composite::Computes(x)) {
    const at::Tensor wide = x.to(first.weight.scalar_type());
    const auto unit = [&](const ConvFilter& filter) {
      return composite::UnitVectors(
          composite::CausalConv("[unit_convs]", wide, filter.weight, filter.bias, past, cu_seqlens), size,
          eps);
    };
    return {unit(first), unit(second)};
  }
  static const auto op = Operator<UnitConvSignature>("lattice::_unit_convs");
  const auto call = [&](const at::Tensor& input, const OptionalTensor& before) {
    return op.call(input, first.weight, first.bias, second.weight, second.bias, size, eps, before,
                   cu_seqlens);
  };
  if (!WantsPastGradient("[unit_convs]", past, cu_seqlens)) {
    const auto [a, b] = call(x, past);
    return {a, b};
  }
  const auto [a, b] = call(at::cat({past->to(x.scalar_type()), x}, 1), std::nullopt);
  const c10::SymInt earlier = past->sym_size(1), T = x.sym_size(1);
  return {a.narrow_symint(1, earlier, T), b.narrow_symint(1, earlier, T)};
}

#define LATTICE_UNIT_CONV_SCHEMA                                                                      \
  "Tensor x, Tensor weight1, Tensor bias1, Tensor weight2, Tensor bias2, int size, float eps=1e-12, " \
  "Tensor? past=None, Tensor? cu_seqlens=None"

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("unit_convs(" LATTICE_UNIT_CONV_SCHEMA ") -> (Tensor, Tensor)", UnitConvsOp);
  m.def("_unit_convs(" LATTICE_UNIT_CONV_SCHEMA ") -> (Tensor, Tensor)");
  m.def("_unit_convs_backward(Tensor dy1, Tensor dy2, " LATTICE_UNIT_CONV_SCHEMA
        ") -> (Tensor dx, Tensor dweight1, Tensor dbias1, Tensor dweight2, Tensor dbias2)");
}
TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_unit_convs", UnitConvForward);
  m.impl("_unit_convs_backward", UnitConvBackward);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_unit_convs", UnitConvShape);
  m.impl("_unit_convs_backward", UnitConvBackwardShape);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_unit_convs", UnitConvAutograd);
  m.impl("_unit_convs_backward", WithoutDerivative());
}

}  // namespace lattice
