// The CPU kernels behind lattice::_forward and lattice::_backward.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "ops/inputs.h"
#include "ops/kept.h"
#include "ops/kernel_views.h"

namespace lattice {
namespace {

// A problem and the tensors that keep its pointers alive.
struct Prepared {
  Inputs in;
  std::vector<kernels::Sequence> sequences;

  Prepared(const kernels::RuleInfo& rule, Inputs inputs) : in(std::move(inputs)) {
    in.q = RowsContiguous(in.q);
    in.k = RowsContiguous(in.k);
    in.v = RowsContiguous(in.v);
    in.mu = RowsContiguous(in.mu);
    in.state = in.state.contiguous();
    const int64_t M = in.q.size(3), D = in.v.size(3);
    const int64_t state_size = rule.StateSize(M, D), note_size = KernelsFor(rule, in).notes.Of(M, D);
    sequences = SequencesOf(rule, in, [&](int64_t length) {
      return std::pair(kernels::CheckpointsOf(length),
                       length - kernels::NotedFrom(length, state_size, note_size));
    });
  }

  template <typename T>
  void Fill(const kernels::RuleInfo& rule, const std::string& normalize, kernels::Problem<T>& p) const {
    p.heads = in.q.size(2);
    p.slots = in.q.size(3);
    p.width = in.v.size(3);
    p.state_size = rule.StateSize(p.slots, p.width);
    p.sequences = sequences.data();
    p.count = static_cast<int64_t>(sequences.size());
    p.normalize = normalize == "token" ? kernels::Normalize::kToken : kernels::Normalize::kNone;
    p.q = ViewOf<T>(in.q);
    p.k = ViewOf<T>(in.k);
    p.v = ViewOf<T>(in.v);
    p.gamma = ViewOf<T>(in.gamma);
    p.mu = ViewOf<T>(in.mu);
    p.lam = ViewOf<T>(in.lam);
    p.igate = ViewOf<T>(in.igate);
    p.fgate = ViewOf<T>(in.fgate);
    p.state = in.state.const_data_ptr<T>();
  }
};

void CheckKernelTypes(const kernels::RuleInfo& rule, const Inputs& in) {
  const auto same = [&](const at::Tensor& x) { return x.scalar_type() == in.state.scalar_type(); };
  const auto optional = [&](const OptionalTensor& x) { return !x.has_value() || same(*x); };
  TORCH_CHECK_TYPE(same(in.q) && same(in.k) && same(in.v) && optional(in.gamma) && optional(in.mu) &&
                       optional(in.lam) && optional(in.igate) && optional(in.fgate),
                   OperatorName(rule),
                   " the kernel takes one type for all tensors; call lattice.scan or recur");
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Forward(const std::string& rule_name,
                                                       const std::string& normalize, const at::Tensor& q,
                                                       const at::Tensor& k, const at::Tensor& v,
                                                       const OptionalTensor& gamma, const OptionalTensor& mu,
                                                       const OptionalTensor& lam, const OptionalTensor& igate,
                                                       const OptionalTensor& fgate, const at::Tensor& state,
                                                       const OptionalTensor& cu_seqlens, bool keep) {
  const kernels::RuleInfo& rule = RuleNamed(rule_name);
  Inputs in{q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens};
  CheckInputs(rule, normalize, in);
  CheckKernelTypes(rule, in);
  at::Tensor y = at::empty(v.sizes(), state.options());
  at::Tensor state_out = at::empty(state.sizes(), state.options());
  const KeptRoom room(rule, in);
  at::Tensor kept = at::empty({keep ? room.Total().expect_int() : 0}, state.options());
  const Prepared prepared(rule, std::move(in));
  AT_DISPATCH_FLOATING_TYPES(state.scalar_type(), "lattice_forward", [&] {
    kernels::ForwardProblem<scalar_t> p;
    prepared.Fill(rule, normalize, p);
    p.y = MutableView<scalar_t>(y);
    p.state_out = state_out.mutable_data_ptr<scalar_t>();
    if (keep) {
      p.checkpoints = kept.mutable_data_ptr<scalar_t>();
      p.notes = p.checkpoints + room.states.expect_int();
    }
    const auto run = KernelsFor(rule, prepared.in).template Forward<scalar_t>();
    OverCells(p.Cells(), [&](int64_t first, int64_t last) { run(p, first, last); });
  });
  return {y, state_out, kept};
}

using Grads = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
                         at::Tensor, at::Tensor>;

Grads Backward(const std::string& rule_name, const std::string& normalize, const at::Tensor& q,
               const at::Tensor& k, const at::Tensor& v, const OptionalTensor& gamma,
               const OptionalTensor& mu, const OptionalTensor& lam, const OptionalTensor& igate,
               const OptionalTensor& fgate, const at::Tensor& state, const OptionalTensor& cu_seqlens,
               const at::Tensor& kept, const at::Tensor& dy, const OptionalTensor& dstate_out) {
  const kernels::RuleInfo& rule = RuleNamed(rule_name);
  Inputs in{q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens};
  CheckInputs(rule, normalize, in);
  CheckKernelTypes(rule, in);
  const Prepared prepared(rule, std::move(in));
  const KeptRoom room(rule, prepared.in);
  TORCH_CHECK_VALUE(kept.numel() == room.Total() && kept.is_contiguous(), OperatorName(rule),
                    " what the forward pass kept does not belong to these inputs");
  const auto options = state.options();
  const auto like = [&](const OptionalTensor& x) {
    return x.has_value() ? at::empty(x->sizes(), options) : at::empty({0}, options);
  };
  const at::Tensor dy_rows = RowsContiguous(dy);
  const OptionalTensor dstate_rows =
      dstate_out.has_value() ? OptionalTensor(dstate_out->contiguous()) : dstate_out;
  Grads grads{at::empty(q.sizes(), options),
              at::empty(k.sizes(), options),
              at::empty(v.sizes(), options),
              like(gamma),
              like(mu),
              like(lam),
              like(igate),
              like(fgate),
              at::empty(state.sizes(), options)};
  AT_DISPATCH_FLOATING_TYPES(state.scalar_type(), "lattice_backward", [&] {
    kernels::BackwardProblem<scalar_t> p;
    prepared.Fill(rule, normalize, p);
    p.checkpoints = kept.const_data_ptr<scalar_t>();
    p.notes = p.checkpoints + room.states.expect_int();
    p.dy = ViewOf<scalar_t>(dy_rows);
    p.dstate_out = dstate_rows.has_value() ? dstate_rows->const_data_ptr<scalar_t>() : nullptr;
    p.dq = MutableView<scalar_t>(std::get<0>(grads));
    p.dk = MutableView<scalar_t>(std::get<1>(grads));
    p.dv = MutableView<scalar_t>(std::get<2>(grads));
    p.dgamma = MutableView<scalar_t>(std::get<3>(grads));
    p.dmu = MutableView<scalar_t>(std::get<4>(grads));
    p.dlam = MutableView<scalar_t>(std::get<5>(grads));
    p.digate = MutableView<scalar_t>(std::get<6>(grads));
    p.dfgate = MutableView<scalar_t>(std::get<7>(grads));
    p.dstate = std::get<8>(grads).mutable_data_ptr<scalar_t>();
    const auto run = KernelsFor(rule, prepared.in).template Backward<scalar_t>();
    OverCells(p.Cells(), [&](int64_t first, int64_t last) { run(p, first, last); });
  });
  return grads;
}

}  // namespace

TORCH_LIBRARY_IMPL(lattice, CPU, m) {
  m.impl("_forward", Forward);
  m.impl("_backward", Backward);
}

}  // namespace lattice
