// Shapes without data, for torch.compile, torch.export and fake tensors.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/inputs.h"
#include "ops/kept.h"

namespace lattice {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> Forward(const std::string& rule_name,
                                                       const std::string& normalize, const at::Tensor& q,
                                                       const at::Tensor& k, const at::Tensor& v,
                                                       const OptionalTensor& gamma, const OptionalTensor& mu,
                                                       const OptionalTensor& lam, const OptionalTensor& igate,
                                                       const OptionalTensor& fgate, const at::Tensor& state,
                                                       const OptionalTensor& cu_seqlens, bool keep) {
  const kernels::RuleInfo& rule = RuleNamed(rule_name);
  const Inputs in{q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens};
  CheckInputs(rule, normalize, in);
  const KeptRoom room(rule, in);
  const auto options = state.options();
  return {at::empty_symint(v.sym_sizes(), options), at::empty_symint(state.sym_sizes(), options),
          at::empty_symint({keep ? room.Total() : c10::SymInt(0)}, options)};
}

using Grads = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
                         at::Tensor, at::Tensor>;

Grads Backward(const std::string&, const std::string&, const at::Tensor& q, const at::Tensor& k,
               const at::Tensor& v, const OptionalTensor& gamma, const OptionalTensor& mu,
               const OptionalTensor& lam, const OptionalTensor& igate, const OptionalTensor& fgate,
               const at::Tensor& state, const OptionalTensor&, const at::Tensor&, const at::Tensor&,
               const OptionalTensor&) {
  const auto options = state.options();
  const auto like = [&](const at::Tensor& x) { return at::empty_symint(x.sym_sizes(), options); };
  const auto maybe = [&](const OptionalTensor& x) {
    return x.has_value() ? like(*x) : at::empty({0}, options);
  };
  return {like(q),    like(k),      like(v),      maybe(gamma), maybe(mu),
          maybe(lam), maybe(igate), maybe(fgate), like(state)};
}

}  // namespace

TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_forward", Forward);
  m.impl("_backward", Backward);
}

}  // namespace lattice
