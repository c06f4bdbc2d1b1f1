// lattice::rms_norm, add_rms_norm and unit_vectors, which are one operator inside: a norm of rows with an optional sum
// before it and an optional weight behind it.
#include "ops/row_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "kernels/dense/row_norm.h"
#include "ops/dispatch.h"
#include "ops/storage.h"
#include "ops/tiles.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

class RowNormFunction : public torch::autograd::Function<RowNormFunction> {
 public:
  // With a delta {sum, y}, else {y}.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const OptionalTensor& delta,
                               const OptionalTensor& weight, double share, double eps, bool bf16) {
    at::AutoDispatchBelowADInplaceOrView below;
    static const auto op = Operator<RowNormSignature>("lattice::_row_norm");
    const auto [sum, y] = op.call(x, delta, weight, share, eps, bf16);
    ctx->save_for_backward({delta.has_value() ? sum : x, weight.value_or(at::Tensor())});
    ctx->saved_data["share"] = share;
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["bf16_delta"] = delta.has_value() && delta->scalar_type() == at::kBFloat16;
    ctx->saved_data["delta"] = delta.has_value();
    ctx->set_materialize_grads(false);
    if (!delta.has_value()) return {y};
    return {sum, y};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &sum = saved[0], dy = grads.back().defined() ? grads.back() : at::zeros_like(sum);
    const bool has_delta = ctx->saved_data["delta"].toBool(), narrow = ctx->saved_data["bf16_delta"].toBool();
    static const auto op = Operator<RowNormBackwardSignature>("lattice::_row_norm_backward");
    const auto [dx, ddelta, dweight] =
        op.call(has_delta ? IfDefined(grads[0]) : std::nullopt, dy, sum, IfDefined(saved[1]),
                ctx->saved_data["share"].toDouble(), ctx->saved_data["eps"].toDouble(), narrow);
    const at::Tensor none;
    return {dx,  !has_delta ? none : narrow ? ddelta : dx, saved[1].defined() ? dweight : none, none, none,
            none};
  }
};

RowNormResult RowNormAutograd(const at::Tensor& x, const OptionalTensor& delta, const OptionalTensor& weight,
                              double share, double eps, bool bf16) {
  const variable_list out = RowNormFunction::apply(x, delta, weight, share, eps, bf16);
  return {out.size() == 2 ? out[0] : Nothing(x), out.back()};
}

RowNormResult RunRowNorm(const at::Tensor& x, const OptionalTensor& delta, const OptionalTensor& weight,
                         double share, double eps, bool bf16) {
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

double MeanShare(const at::Tensor& x) { return 1.0 / static_cast<double>(x.size(-1)); }

RowNormResult AddRmsNormOp(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight, double eps,
                           bool bf16) {
  const auto [sum, y] = AddRmsNorm(x, delta, weight, eps, bf16);
  return {sum, y};
}

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps, bool bf16) {
  RequireCpu("[rms_norm]", {x, weight});
  CheckNorm("[rms_norm]", x, weight);
  return std::get<1>(RunRowNorm(x, std::nullopt, weight, MeanShare(x), eps, bf16));
}

std::pair<at::Tensor, at::Tensor> AddRmsNorm(const at::Tensor& x, const at::Tensor& delta,
                                             const at::Tensor& weight, double eps, bool bf16) {
  RequireCpu("[add_rms_norm]", {x, delta, weight});
  CheckNorm("[add_rms_norm]", x, weight);
  TORCH_CHECK_VALUE(x.sym_sizes() == delta.sym_sizes(),
                    "[add_rms_norm] x and delta must have one shape, got ", x.sym_sizes(), " and ",
                    delta.sym_sizes());
  const auto [sum, y] = RunRowNorm(x, delta, weight, MeanShare(x), eps, bf16);
  return {sum, y};
}

at::Tensor UnitVectors(const at::Tensor& x, double eps) {
  RequireCpu("[unit_vectors]", {x});
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
TORCH_LIBRARY_IMPL(lattice, Autograd, m) { m.impl("_row_norm", RowNormAutograd); }

}  // namespace lattice
