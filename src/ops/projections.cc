// lattice::projections: one product for all weights, and one for the gradient of the input they share.
#include "ops/projections.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/composite.h"
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/products.h"

namespace lattice {
namespace {

using ProjectSignature = std::vector<at::Tensor>(const at::Tensor& x, const at::Tensor& joined,
                                                 at::TensorList weights);
// dx, and the gradients of all weights below each other
using ProjectGradients = std::tuple<at::Tensor, at::Tensor>;
// `input`: whether dx is wanted; else it has no elements.
using ProjectBackwardSignature = ProjectGradients(at::TensorList grads, const at::Tensor& x,
                                                  const at::Tensor& joined, at::ScalarType weight_type,
                                                  bool input);

// x as a matrix of the products' type.
at::Tensor Rows(const at::Tensor& x, const at::Tensor& joined) {
  return x.reshape({-1, x.size(-1)}).to(joined.scalar_type()).contiguous();
}

// [N, columns of all parts]; no copy where the parts are neighbouring columns of one matrix already.
at::Tensor JoinColumns(const std::vector<at::Tensor>& parts) {
  const at::Tensor& first = parts[0];
  int64_t columns = 0;
  bool neighbours = true;
  for (const at::Tensor& part : parts) {
    neighbours = neighbours && part.is_alias_of(first) && part.strides() == first.strides() &&
                 part.stride(1) == 1 && part.storage_offset() == first.storage_offset() + columns;
    columns += part.size(1);
  }
  if (!neighbours || first.stride(0) != columns)
    return parts.size() == 1 ? first.contiguous() : at::cat(parts, 1);
  return first.as_strided({first.size(0), columns}, {columns, 1});
}

std::vector<at::Tensor> ProjectCpu(const at::Tensor& x_in, const at::Tensor& joined, at::TensorList weights) {
  const at::Tensor x = Rows(x_in, joined);
  std::vector<int64_t> shape = x_in.sizes().vec();
  std::vector<at::Tensor> results;
  int64_t row = 0;
  for (const at::Tensor& weight : weights) {
    shape.back() = weight.size(0);
    results.push_back(OutputProduct(x, joined.narrow(0, row, shape.back())).view(shape));
    row += shape.back();
  }
  return results;
}

ProjectGradients ProjectBackwardCpu(at::TensorList grads, const at::Tensor& x_in, const at::Tensor& joined,
                                    at::ScalarType weight_type, bool input) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& g : grads) rows.push_back(g.reshape({-1, g.size(-1)}));
  const at::Tensor g = JoinColumns(rows);
  const at::Tensor dx = input ? InputGradient(g, joined).view(x_in.sizes()).to(x_in.scalar_type())
                              : at::empty({0}, x_in.options());
  return {dx, WeightGradient(g, Rows(x_in, joined)).to(weight_type)};
}

std::vector<at::Tensor> ProjectShape(const at::Tensor& x, const at::Tensor& joined, at::TensorList weights) {
  std::vector<at::Tensor> results;
  c10::SymDimVector shape(x.sym_sizes());
  for (const at::Tensor& weight : weights) {
    shape.back() = weight.sym_size(0);
    results.push_back(at::empty_symint(shape, joined.options()));
  }
  return results;
}

ProjectGradients ProjectBackwardShape(at::TensorList, const at::Tensor& x, const at::Tensor& joined,
                                      at::ScalarType weight_type, bool input) {
  return {input ? NewLike(x) : at::empty({0}, x.options()), NewLike(joined, weight_type)};
}

std::vector<at::Tensor> ProjectAutograd(const at::Tensor& x, const at::Tensor& joined,
                                        at::TensorList weights) {
  static const auto op = Operator<ProjectSignature>("lattice::_projections");
  const std::vector<at::Tensor> y = BelowAutograd(op, x, joined, weights);
  const auto backward = [type = weights[0].scalar_type(), input = x.requires_grad()](
                            const variable_list& in, const variable_list& grads) -> variable_list {
    static const auto reverse = Operator<ProjectBackwardSignature>("lattice::_projections_backward");
    const auto [dx, dweight] = reverse.call(grads, in[0], in[1], type, input);
    variable_list results = {input ? dx : at::Tensor()};
    c10::SymInt row = 0;
    for (const at::Tensor& g : grads) {
      results.push_back(dweight.narrow_symint(0, row, g.sym_size(-1)));
      row = row + g.sym_size(-1);
    }
    return results;
  };
  variable_list inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  DifferentiateLayer("[projections]", inputs, y, {x, joined}, backward);
  return y;
}

void CheckProjections(const at::Tensor& x, at::TensorList weights) {
  for (const at::Tensor& weight : weights) {
    RequireOneDevice("[projections]", {x, weight});
    TORCH_CHECK_VALUE(weight.dim() == 2 && x.dim() >= 1 && weight.sym_size(1) == x.sym_size(-1),
                      "[projections] needs x [...,in] and weights [out,in], got ", x.sym_sizes(), " and ",
                      weight.sym_sizes());
  }
}

std::vector<at::Tensor> ProjectionsOp(const at::Tensor& x, at::TensorList weights, bool bf16) {
  TORCH_CHECK_VALUE(!weights.empty(), "[projections] needs at least one weight");
  const at::ScalarType type = bf16 ? at::kBFloat16 : weights[0].scalar_type();
  CheckProjections(x, weights);
  if (composite::Computes(x)) return composite::Project(x, weights, type);
  return Project(x, JoinWeights(weights, type), weights);
}

}  // namespace

std::vector<at::Tensor> Project(const at::Tensor& x, const at::Tensor& joined, at::TensorList weights) {
  CheckProjections(x, weights);
  if (composite::Computes(x)) return composite::Project(x, weights, joined.scalar_type());
  static const auto op = Operator<ProjectSignature>("lattice::_projections");
  return op.call(x, joined, weights);
}

at::Tensor JoinWeights(at::TensorList weights, at::ScalarType type) {
  if (weights.size() == 1) return weights[0].detach().to(type);
  std::vector<at::Tensor> detached;
  for (const at::Tensor& weight : weights) detached.push_back(weight.detach());
  return at::cat(detached, 0).to(type);
}

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("projections(Tensor x, Tensor[] weights, bool bf16=False) -> Tensor[]", ProjectionsOp);
  m.def("_projections(Tensor x, Tensor joined, Tensor[] weights) -> Tensor[]");
  m.def(
      "_projections_backward(Tensor[] grads, Tensor x, Tensor joined, ScalarType weight_type, bool input) "
      "-> (Tensor dx, Tensor dweight)");
}
TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_projections", ProjectCpu);
  m.impl("_projections_backward", ProjectBackwardCpu);
}
TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_projections", ProjectShape);
  m.impl("_projections_backward", ProjectBackwardShape);
}
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_projections", ProjectAutograd);
  m.impl("_projections_backward", WithoutDerivative());
}

}  // namespace lattice
