#include "nn/projections.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "nn/layers.h"
#include "ops/products.h"

namespace lattice::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

constexpr size_t kMostWeights = 3;

// The weights one by one, because autograd looks into no vectors.
class ProjectionsFunction : public torch::autograd::Function<ProjectionsFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& joined,
                               const at::Tensor& first, const std::optional<at::Tensor>& second,
                               const std::optional<at::Tensor>& third) {
    const at::Tensor x = x_in.reshape({-1, x_in.size(-1)}).to(joined.scalar_type()).contiguous();
    std::vector<int64_t> shape = x_in.sizes().vec();
    variable_list results;
    int64_t row = 0;
    for (const std::optional<at::Tensor>& weight : {std::optional(first), second, third}) {
      if (!weight.has_value()) continue;
      shape.back() = weight->size(0);
      results.push_back(OutputProduct(x, joined.narrow(0, row, shape.back())).view(shape));
      row += shape.back();
    }
    ctx->save_for_backward({x, joined});
    ctx->saved_data["type"] = x_in.scalar_type();
    ctx->saved_data["weight_type"] = first.scalar_type();
    return results;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &joined = saved[1];
    std::vector<int64_t> shape = grads[0].sizes().vec();
    shape.back() = x.size(1);
    for (at::Tensor& g : grads) g = g.reshape({-1, g.size(-1)});
    const at::Tensor g = JoinColumns(grads);
    const at::Tensor dx = InputGradient(g, joined).view(shape).to(ctx->saved_data["type"].toScalarType());
    const at::Tensor dweight = WeightGradient(g, x).to(ctx->saved_data["weight_type"].toScalarType());
    variable_list results = {dx, at::Tensor()};
    int64_t row = 0;
    for (const at::Tensor& part : grads) {
      results.push_back(dweight.narrow(0, row, part.size(1)));
      row += part.size(1);
    }
    results.resize(2 + kMostWeights);
    return results;
  }
};

}  // namespace

Projections::Projections(std::vector<at::Tensor> weights) : weights_(std::move(weights)) {
  Check(!weights_.empty() && weights_.size() <= kMostWeights, "[model] a group of projections has 1 to ",
        kMostWeights, " weights, got ", weights_.size());
}

const at::Tensor& Projections::Joined(at::ScalarType type) const {
  int64_t version = 0;
  for (const at::Tensor& weight : weights_) version += weight._version();
  if (joined_.defined() && version == version_ && joined_.scalar_type() == type) return joined_;
  at::NoGradGuard no_grad;
  joined_ = weights_.size() == 1 ? weights_[0].detach().to(type) : at::cat(weights_, 0).to(type);
  version_ = version;
  return joined_;
}

std::vector<at::Tensor> Projections::operator()(const at::Tensor& x) const {
  const at::ScalarType type = Bf16Scope::active() ? at::kBFloat16 : weights_[0].scalar_type();
  const auto weight = [&](size_t i) {
    return i < weights_.size() ? std::optional(weights_[i]) : std::nullopt;
  };
  return ProjectionsFunction::apply(x, Joined(type), weights_[0], weight(1), weight(2));
}

}  // namespace lattice::nn
