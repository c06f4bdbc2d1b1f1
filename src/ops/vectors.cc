#include "ops/vectors.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "model/keys.h"
#include "model/rope.h"
#include "ops/dispatch.h"
#include "ops/row_norm.h"
#include "ops/short_conv.h"

namespace lattice {

using model::Activation;
using model::VectorNorm;

at::Tensor NormalizeVectors(const at::Tensor& x, VectorNorm kind) {
  switch (kind) {
    case VectorNorm::kNone:
      return x;
    case VectorNorm::kL2:
      return UnitVectors(x, kUnitEps);
    case VectorNorm::kScale:
      return x * (1 / std::sqrt(static_cast<double>(FixedSize(x, -1))));
    case VectorNorm::kRms:
      return UnitVectors(x, kUnitEps) * std::sqrt(static_cast<double>(FixedSize(x, -1)));
  }
  return x;
}

at::Tensor Activate(const at::Tensor& x, Activation kind) {
  return kind == Activation::kSilu ? at::silu(x) : x;
}

std::pair<at::Tensor, at::Tensor> QueriesAndKeys(const at::Tensor& x, const ConvFilter& q,
                                                 const ConvFilter& k, int64_t size, VectorNorm norm,
                                                 Activation activation, const std::optional<at::Tensor>& past,
                                                 const std::optional<at::Tensor>& cu_seqlens) {
  TORCH_CHECK_VALUE(x.dim() == 3 && size > 0 && x.sym_size(2) % size == 0,
                    "[queries_and_keys] x must be [B,T,H*M] with M = ", size, ", got ", x.sym_sizes());
  const auto heads = [&](const at::Tensor& y) {
    return y.view_symint({y.sym_size(0), y.sym_size(1), y.sym_size(2) / size, size});
  };
  if (norm == VectorNorm::kL2 && activation == Activation::kNone && q.weight.scalar_type() == at::kFloat) {
    const auto [a, b] = UnitConvs(x, q, k, size, kUnitEps, past, cu_seqlens);
    return {heads(a), heads(b)};
  }
  const at::Tensor wide = x.to(q.weight.scalar_type());
  const auto part = [&](const ConvFilter& filter) {
    const at::Tensor y = CausalConv(wide, filter.weight, filter.bias, past, cu_seqlens);
    return NormalizeVectors(heads(Activate(y, activation)), norm);
  };
  return {part(q), part(k)};
}

at::Tensor RopeRateTensor(const model::ModelConfig& config, int64_t pairs) {
  const std::vector<double> rates = model::RopeRates(config, pairs);
  at::Tensor out = at::empty({pairs}, at::kDouble);
  std::copy(rates.begin(), rates.end(), out.mutable_data_ptr<double>());
  return out;
}

at::Tensor Rotate(const at::Tensor& x, const at::Tensor& position, const at::Tensor& rates, int64_t period) {
  RequireOneDevice("[rotate]", {x, position});
  const int64_t width = FixedSize(x, -1), half = width / 2;
  TORCH_CHECK_VALUE(rates.dim() == 1 && rates.size(0) == half && rates.scalar_type() == at::kDouble,
                    "[rotate] rates must be float64 [", half, "], one for each pair of features, got ",
                    rates.scalar_type(), " ", rates.sizes());
  at::Tensor turned = position.to(at::kDouble);
  if (period > 0) turned = turned.remainder(period);
  const at::Tensor angle = (turned.unsqueeze(-1) * rates.to(x.device())).unsqueeze(-2);
  const at::Tensor cos = angle.cos().to(x.scalar_type()), sin = angle.sin().to(x.scalar_type());
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  std::vector<at::Tensor> parts = {a * cos - b * sin, a * sin + b * cos};
  if (width % 2 == 1) parts.push_back(x.narrow(-1, 2 * half, 1));
  return at::cat(parts, -1);
}

namespace {

// Words of the configuration, wrong ones as a ValueError.
template <class Parse>
auto WordOf(const Parse& parse, const std::string& word) {
  try {
    return parse(word);
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

std::tuple<at::Tensor, at::Tensor> QueriesAndKeysOp(const at::Tensor& x, const at::Tensor& q_weight,
                                                    const at::Tensor& q_bias, const at::Tensor& k_weight,
                                                    const at::Tensor& k_bias, int64_t size,
                                                    const std::string& norm, const std::string& activation,
                                                    const std::optional<at::Tensor>& past,
                                                    const std::optional<at::Tensor>& cu_seqlens) {
  const auto [q, k] =
      QueriesAndKeys(x, {q_weight, q_bias}, {k_weight, k_bias}, size, WordOf(model::VectorNormNamed, norm),
                     WordOf(model::ActivationNamed, activation), past, cu_seqlens);
  return {q, k};
}

// The results of an operator are new tensors.
at::Tensor New(const at::Tensor& y, const at::Tensor& x) { return y.is_same(x) ? x.clone() : y; }

at::Tensor NormalizeOp(const at::Tensor& x, const std::string& kind) {
  return New(NormalizeVectors(x, WordOf(model::VectorNormNamed, kind)), x);
}

at::Tensor ActivateOp(const at::Tensor& x, const std::string& kind) {
  return New(Activate(x, WordOf(model::ActivationNamed, kind)), x);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def(
      "queries_and_keys(Tensor x, Tensor q_weight, Tensor q_bias, Tensor k_weight, Tensor k_bias, int size, "
      "str norm=\"l2\", str activation=\"none\", Tensor? past=None, Tensor? cu_seqlens=None) -> (Tensor, "
      "Tensor)",
      QueriesAndKeysOp);
  m.def("normalize_vectors(Tensor x, str kind) -> Tensor", NormalizeOp);
  m.def("activate(Tensor x, str kind) -> Tensor", ActivateOp);
  m.def("rotate(Tensor x, Tensor position, Tensor rates, int period=0) -> Tensor", Rotate);
}

}  // namespace lattice
