// lattice::rms_norm, add_rms_norm and unit_vectors, which are one operator inside: a norm of rows with an optional sum
// before it and an optional weight behind it.
#include "ops/row_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include "kernels/dense/row_norm.h"
#include "ops/composite.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

// The sum x + delta (nothing without a delta), and the norm.
using RowNormResult = std::tuple<at::Tensor, at::Tensor>;
// Of x, of a delta in bfloat16 (that of others is the same as of x), and of the weight.
using RowNormGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using RowNormSignature = RowNormResult(const at::Tensor& x, const OptionalTensor& delta,
                                       const OptionalTensor& weight, double share, double eps, bool bf16);
using RowNormBackwardSignature = RowNormGradients(const OptionalTensor& dsum, const at::Tensor& dy,
                                                  const at::Tensor& sum, const OptionalTensor& weight,
                                                  double share, double eps, bool bf16_delta);

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

RowNormResult RowNormCpu(const at::Tensor& x_in, const OptionalTensor& delta_in,
                         const OptionalTensor& weight_in, double share, double eps, bool bf16) {
  const at::Tensor x = x_in.contiguous(), delta = Contiguous(delta_in), weight = Contiguous(weight_in);
  const at::Tensor sum = delta.defined() ? NewLike(x) : Nothing(x);
  const at::Tensor y = NewLike(x, bf16 ? at::kBFloat16 : x.scalar_type());
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
  return {sum, y};
}

RowNormGradients RowNormBackwardCpu(const OptionalTensor& dsum_in, const at::Tensor& dy_in,
                                    const at::Tensor& sum_in, const OptionalTensor& weight_in, double share,
                                    double eps, bool bf16_delta) {
  const at::Tensor sum = sum_in.contiguous(), weight = Contiguous(weight_in);
  const at::Tensor dsum = Contiguous(dsum_in), dy = dy_in.contiguous();
  const at::Tensor dx = NewLike(sum), ddelta = bf16_delta ? NewLike(sum, at::kBFloat16) : Nothing(sum);
  at::Tensor dweight = Nothing(sum);
  AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "lattice_row_norm_backward", [&] {
    kernels::RowNormBackward<scalar_t> p;
    Describe(sum, weight, share, eps, p);
    p.sum = sum.const_data_ptr<scalar_t>();
    if (dsum.defined()) p.dsum = dsum.const_data_ptr<scalar_t>();
    p.dy = StoredOf<scalar_t>(dy);
    p.dx = dx.mutable_data_ptr<scalar_t>();
    if (bf16_delta) p.dx_bf16 = MutableDataOf<uint16_t>(ddelta);
    const at::Tensor partial = at::empty({weight.defined() ? p.Tiles() : 0, p.width}, sum.options());
    p.partial = partial.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, p.Tiles(), 1, [&](int64_t first, int64_t last) { kernels::Run(p, first, last); });
    if (weight.defined()) dweight = SumTiles(partial);
  });
  return {dx, ddelta, dweight};
}

RowNormResult RowNormShape(const at::Tensor& x, const OptionalTensor& delta, const OptionalTensor&, double,
                           double, bool bf16) {
  return {delta.has_value() ? NewLike(x) : Nothing(x), NewLike(x, bf16 ? at::kBFloat16 : x.scalar_type())};
}

RowNormGradients RowNormBackwardShape(const OptionalTensor&, const at::Tensor&, const at::Tensor& sum,
                                      const OptionalTensor& weight, double, double, bool bf16_delta) {
  return {NewLike(sum), bf16_delta ? NewLike(sum, at::kBFloat16) : Nothing(sum),
          weight.has_value() ? NewLike(*weight) : Nothing(sum)};
}

RowNormResult RowNormAutograd(const at::Tensor& x, const OptionalTensor& delta, const OptionalTensor& weight,
                              double share, double eps, bool bf16) {
  static const auto op = Operator<RowNormSignature>("lattice::_row_norm");
  const auto [sum, y] = BelowAutograd(op, x, delta, weight, share, eps, bf16);
  const bool adds = delta.has_value(), narrow = adds && delta->scalar_type() == at::kBFloat16;
  const auto backward = [=](const variable_list& in, const variable_list& grads) -> variable_list {
    static const auto reverse = Operator<RowNormBackwardSignature>("lattice::_row_norm_backward");
    const OptionalTensor dsum = adds ? OptionalTensor(grads[0]) : std::nullopt;
    const auto [dx, ddelta, dweight] =
        reverse.call(dsum, grads.back(), in[0], IfDefined(in[1]), share, eps, narrow);
    return {dx, !adds ? at::Tensor() : narrow ? ddelta : dx, in[1].defined() ? dweight : at::Tensor()};
  };
  const at::Tensor none;
  DifferentiateLayer("[row_norm]", {x, delta.value_or(none), weight.value_or(none)},
                     adds ? variable_list{sum, y} : variable_list{y},
                     {adds ? sum.detach() : x, weight.value_or(none)}, backward);
  return {sum, y};
}

RowNormResult RunRowNorm(const at::Tensor& x, const OptionalTensor& delta, const OptionalTensor& weight,
                         double share, double eps, bool bf16) {
  if (composite::Computes(x)) return composite::RowNorm(x, delta, weight, share, eps, bf16);
  static const auto op = Operator<RowNormSignature>("lattice::_row_norm");
  return op.call(x, delta, weight, share, eps, bf16);
}

void CheckNorm(const char* op, const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK_VALUE(x.dim() >= 1 && weight.dim() == 1 && weight.sym_size(0) == x.sym_size(-1), op,
                    " the weight must be [C] for x [...,C], got ", weight.sym_sizes(), " and ",
                    x.sym_sizes());
  TORCH_CHECK_TYPE(weight.scalar_type() == x.scalar_type(), op, " x is ", x.scalar_type(),
                   " but the weight is ", weight.scalar_type(), "; use float32 or float64 for both");
}

double MeanShare(const at::Tensor& x) { return 1.0 / static_cast<double>(FixedSize(x, -1)); }

RowNormResult AddRmsNormOp(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight, double eps,
                           bool bf16) {
  const auto [sum, y] = AddRmsNorm(x, delta, weight, eps, bf16);
  return {sum, y};
}

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps, bool bf16) {
  RequireOneDevice("[rms_norm]", {x, weight});
  CheckNorm("[rms_norm]", x, weight);
  return std::get<1>(RunRowNorm(x, std::nullopt, weight, MeanShare(x), eps, bf16));
}

std::pair<at::Tensor, at::Tensor> AddRmsNorm(const at::Tensor& x, const at::Tensor& delta,
                                             const at::Tensor& weight, double eps, bool bf16) {
  RequireOneDevice("[add_rms_norm]", {x, delta, weight});
  CheckNorm("[add_rms_norm]", x, weight);
  TORCH_CHECK_VALUE(x.sym_sizes() == delta.sym_sizes(),
                    "[add_rms_norm] x and delta must have one shape, got ", x.sym_sizes(), " and ",
                    delta.sym_sizes());
  const auto [sum, y] = RunRowNorm(x, delta, weight, MeanShare(x), eps, bf16);
  return {sum, y};
}

at::Tensor UnitVectors(const at::Tensor& x, double eps) {
  return std::get<1>(RunRowNorm(x, std::nullopt, std::nullopt, 1.0, eps, false));
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps, bool bf16=False) -> Tensor", RmsNorm);
  m.def(
      "add_rms_norm(Tensor x, Tensor delta, Tensor weight, float eps, bool bf16=False) -> (Tensor sum, "
      "Tensor y)",
      AddRmsNormOp);
  m.def("unit_vectors(Tensor x, float eps=1e-12) -> Tensor", UnitVectors);
  m.def(
      "_row_norm(Tensor x, Tensor? delta, Tensor? weight, float share, float eps, bool bf16) "
      "-> (Tensor sum, Tensor y)");
  m.def(
      "_row_norm_backward(Tensor? dsum, Tensor dy, Tensor sum, Tensor? weight, float share, float eps, "
      "bool bf16_delta) -> (Tensor dx, Tensor ddelta, Tensor dweight)");
}
TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_row_norm", RowNormCpu);
  m.impl("_row_norm_backward", RowNormBackwardCpu);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_row_norm", RowNormShape);
  m.impl("_row_norm_backward", RowNormBackwardShape);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_row_norm", RowNormAutograd);
  m.impl("_row_norm_backward", WithoutDerivative());
}

}  // namespace lattice
