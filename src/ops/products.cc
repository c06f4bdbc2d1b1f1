#include "ops/products.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>

namespace lattice {
namespace {

// Below it the cost of a call decides, not the rate.
constexpr int64_t kLargeProduct = int64_t{1} << 26;
constexpr int64_t kSmallestSide = 64;

using LinearSignature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                   std::string_view, c10::List<std::optional<at::Scalar>>,
                                   std::optional<std::string_view>);
using LinearOperator = c10::TypedOperatorHandle<LinearSignature>;

bool IsAmd() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

// torch's oneDNN product x W^T; nothing where it should not be used.
const std::optional<LinearOperator>& OneDnnLinear() {
  static const std::optional<LinearOperator> op = []() -> std::optional<LinearOperator> {
    if (!IsAmd() || !at::globalContext().hasMKLDNN()) return std::nullopt;
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!found.has_value()) return std::nullopt;
    return found->typed<LinearSignature>();
  }();
  return op;
}

bool UseOneDnn(const at::Tensor& x, int64_t n, int64_t in, int64_t out) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat && std::min({n, in, out}) >= kSmallestSide &&
         n * in * out >= kLargeProduct && OneDnnLinear().has_value();
}

at::Tensor CallOneDnn(const at::Tensor& x, const at::Tensor& weight) {
  return OneDnnLinear()->call(x, weight, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), "");
}

}  // namespace

at::Tensor OutputProduct(const at::Tensor& x, const at::Tensor& weight) {
  if (UseOneDnn(x, x.size(0), x.size(1), weight.size(0))) return CallOneDnn(x, weight);
  return at::mm(x, weight.t());
}

at::Tensor InputGradient(const at::Tensor& g, const at::Tensor& weight) {
  if (UseOneDnn(g, g.size(0), weight.size(1), g.size(1))) return CallOneDnn(g, weight.t());
  return at::mm(g, weight);
}

at::Tensor WeightGradient(const at::Tensor& g, const at::Tensor& x) { return at::mm(g.t(), x); }

}  // namespace lattice
