// Schemas, autograd and the public entry points.
#include "ops/recurrence.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "kernels/isa.h"
#include "ops/chunk_scan.h"
#include "ops/inputs.h"

namespace lattice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using ForwardSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const std::string&, const std::string&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
    const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
    const OptionalTensor&, const at::Tensor&, const OptionalTensor&, bool);

using BackwardSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
                                     at::Tensor, at::Tensor, at::Tensor>(
    const std::string&, const std::string&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
    const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
    const OptionalTensor&, const at::Tensor&, const OptionalTensor&, const at::Tensor&, const at::Tensor&,
    const OptionalTensor&);

std::tuple<at::Tensor, at::Tensor, at::Tensor> CallForward(const std::string& rule,
                                                           const std::string& normalize, const Inputs& in,
                                                           bool keep) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("lattice::_forward", "").typed<ForwardSignature>();
  return op.call(rule, normalize, in.q, in.k, in.v, in.gamma, in.mu, in.lam, in.igate, in.fgate, in.state,
                 in.cu_seqlens, keep);
}

OptionalTensor IfDefined(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : std::nullopt; }
at::Tensor OrUndefined(const OptionalTensor& x) { return x.has_value() ? *x : at::Tensor(); }

class Recurrence : public torch::autograd::Function<Recurrence> {
 public:
  static variable_list forward(AutogradContext* ctx, const std::string& rule, const std::string& normalize,
                               const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const OptionalTensor& gamma, const OptionalTensor& mu,
                               const OptionalTensor& lam, const OptionalTensor& igate,
                               const OptionalTensor& fgate, const at::Tensor& state,
                               const OptionalTensor& cu_seqlens) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [y, state_out, kept] = CallForward(
        rule, normalize, {q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens}, /*keep=*/true);
    ctx->saved_data["rule"] = rule;
    ctx->saved_data["normalize"] = normalize;
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({q, k, v, OrUndefined(gamma), OrUndefined(mu), OrUndefined(lam),
                            OrUndefined(igate), OrUndefined(fgate), state, OrUndefined(cu_seqlens), kept});
    return {y, state_out};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "[scan] has first derivatives only; call backward without create_graph=True");
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &v = saved[2];
    const OptionalTensor gamma = IfDefined(saved[3]), mu = IfDefined(saved[4]), lam = IfDefined(saved[5]);
    const OptionalTensor igate = IfDefined(saved[6]), fgate = IfDefined(saved[7]), cu = IfDefined(saved[9]);
    const at::Tensor dy = grads[0].defined() ? grads[0] : at::zeros_symint(v.sym_sizes(), saved[8].options());
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("lattice::_backward", "").typed<BackwardSignature>();
    const auto [dq, dk, dv, dgamma, dmu, dlam, digate, dfgate, dstate] =
        op.call(ctx->saved_data["rule"].toStringRef(), ctx->saved_data["normalize"].toStringRef(), q,
                saved[1], v, gamma, mu, lam, igate, fgate, saved[8], cu, saved[10], dy, IfDefined(grads[1]));
    const auto of = [](const OptionalTensor& x, const at::Tensor& dx) {
      return x.has_value() ? dx : at::Tensor();
    };
    return {at::Tensor(),
            at::Tensor(),
            dq,
            dk,
            dv,
            of(gamma, dgamma),
            of(mu, dmu),
            of(lam, dlam),
            of(igate, digate),
            of(fgate, dfgate),
            dstate,
            at::Tensor()};
  }
};

bool AnyRequiresGrad(const Inputs& in) {
  const auto wants = [](const OptionalTensor& x) { return x.has_value() && x->requires_grad(); };
  return in.q.requires_grad() || in.k.requires_grad() || in.v.requires_grad() || in.state.requires_grad() ||
         wants(in.gamma) || wants(in.mu) || wants(in.lam) || wants(in.igate) || wants(in.fgate);
}

std::tuple<at::Tensor, at::Tensor> RecurrenceAutograd(const std::string& rule, const std::string& normalize,
                                                      const at::Tensor& q, const at::Tensor& k,
                                                      const at::Tensor& v, const OptionalTensor& gamma,
                                                      const OptionalTensor& mu, const OptionalTensor& lam,
                                                      const OptionalTensor& igate,
                                                      const OptionalTensor& fgate, const at::Tensor& state,
                                                      const OptionalTensor& cu_seqlens) {
  const Inputs in{q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens};
  RequireNoTangents(rule.starts_with("lattice_") ? "[scan]" : "[recur]",
                    {q, k, v, OrUndefined(gamma), OrUndefined(mu), OrUndefined(lam), OrUndefined(igate),
                     OrUndefined(fgate), state});
  if (!at::GradMode::is_enabled() || !AnyRequiresGrad(in)) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [y, state_out, kept] = CallForward(rule, normalize, in, /*keep=*/false);
    return {y, state_out};
  }
  auto out = Recurrence::apply(rule, normalize, q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens);
  return {out[0], out[1]};
}

std::tuple<at::Tensor, at::Tensor> RecurrenceForward(const std::string& rule, const std::string& normalize,
                                                     const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v, const OptionalTensor& gamma,
                                                     const OptionalTensor& mu, const OptionalTensor& lam,
                                                     const OptionalTensor& igate, const OptionalTensor& fgate,
                                                     const at::Tensor& state,
                                                     const OptionalTensor& cu_seqlens) {
  auto [y, state_out, kept] = CallForward(
      rule, normalize, {q, k, v, gamma, mu, lam, igate, fgate, state, cu_seqlens}, /*keep=*/false);
  return {y, state_out};
}

using RecurrenceSignature = std::tuple<at::Tensor, at::Tensor>(const std::string&, const std::string&,
                                                               const at::Tensor&, const at::Tensor&,
                                                               const at::Tensor&, const OptionalTensor&,
                                                               const OptionalTensor&, const OptionalTensor&,
                                                               const OptionalTensor&, const OptionalTensor&,
                                                               const at::Tensor&, const OptionalTensor&);

OptionalTensor To(const OptionalTensor& x, at::ScalarType type) {
  return x.has_value() ? OptionalTensor(x->to(type)) : x;
}

// Checks, widens bfloat16 to the state's type, runs, and narrows y again.
std::tuple<at::Tensor, at::Tensor> Run(const kernels::RuleInfo& rule, const std::string& normalize,
                                       const Inputs& in) {
  CheckInputs(rule, normalize, in);
  TORCH_CHECK_VALUE(
      in.q.device().is_cpu() || in.q.is_meta(), OperatorName(rule),
      " the exact recurrence computes on the CPU, but q is on ", in.q.device(),
      "; move the tensors to the CPU, or use a method that is made of matrix products: linear2 of "
      "scan, chunk of recur");
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("lattice::_recurrence", "").typed<RecurrenceSignature>();
  const at::ScalarType type = in.state.scalar_type();
  auto [y, state] = op.call(rule.name, normalize, in.q.to(type), in.k.to(type), in.v.to(type),
                            To(in.gamma, type), To(in.mu, type), To(in.lam, type), To(in.igate, type),
                            To(in.fgate, type), in.state, in.cu_seqlens);
  return {y.to(in.q.scalar_type()), state};
}

std::tuple<at::Tensor, at::Tensor> ScanOp(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& gamma, const OptionalTensor& mu,
                                          const at::Tensor& state, const OptionalTensor& lam,
                                          const OptionalTensor& cu_seqlens, const std::string& objective,
                                          const std::string& normalize, const std::string& method,
                                          int64_t chunk, int64_t sweeps, std::optional<double> tolerance) {
  TORCH_CHECK_VALUE(objective == "dec" || objective == "enc" || objective == "sim", "[scan] objective is '",
                    objective, "'; the choices are 'dec', 'enc' and 'sim'");
  const Inputs in{q, k, v, gamma, mu, lam, std::nullopt, std::nullopt, state, cu_seqlens};
  if (method != "exact") return ChunkScan({objective, normalize, method, chunk, sweeps, tolerance}, in);
  TORCH_CHECK_VALUE(
      chunk == 1 && sweeps == 1 && !tolerance.has_value(),
      "[scan] the exact method has no chunks and no sweeps: chunk and sweeps must be 1, got chunk ", chunk,
      " and sweeps ", sweeps, tolerance.has_value() ? " with a tolerance" : "",
      "; use method 'linear2' for them");
  return Run(RuleNamed("lattice_" + objective), normalize, in);
}

at::Tensor ZeroState(const kernels::RuleInfo& rule, const at::Tensor& q, const at::Tensor& v,
                     const OptionalTensor& cu_seqlens) {
  TORCH_CHECK_VALUE(rule.zero_state, OperatorName(rule), " state is missing; ", rule.name,
                    " has no valid zero state, pass one of shape [B,H,M,D]");
  TORCH_CHECK_VALUE(q.dim() == 4 && v.dim() == 4, OperatorName(rule), " q and v must have 4 dimensions, got ",
                    q.dim(), " and ", v.dim());
  const c10::SymInt N = cu_seqlens.has_value() ? cu_seqlens->sym_numel() - 1 : q.sym_size(0);
  const c10::SymInt M = q.sym_size(3), D = v.sym_size(3);
  const at::ScalarType type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = q.options().dtype(type);
  if (rule.vector_state) return at::zeros_symint({N, q.sym_size(2), M * D + M + 1}, options);
  return at::zeros_symint({N, q.sym_size(2), M, D}, options);
}

std::tuple<at::Tensor, at::Tensor> RecurOp(const std::string& rule_name, const at::Tensor& q,
                                           const at::Tensor& k, const at::Tensor& v,
                                           const OptionalTensor& gamma, const OptionalTensor& mu,
                                           const OptionalTensor& igate, const OptionalTensor& fgate,
                                           const OptionalTensor& state, const OptionalTensor& cu_seqlens) {
  const kernels::RuleInfo& rule = RuleNamed(rule_name);
  const at::Tensor initial = state.has_value() ? *state : ZeroState(rule, q, v, cu_seqlens);
  return Run(rule, "token", {q, k, v, gamma, mu, std::nullopt, igate, fgate, initial, cu_seqlens});
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> Scan(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        const at::Tensor& gamma, const at::Tensor& state,
                                        const ScanOptions& options) {
  return ScanOp(q, k, v, gamma, options.mu, state, options.lam, options.cu_seqlens, options.objective,
                options.normalize, options.method, options.chunk, options.sweeps, options.tolerance);
}

std::tuple<at::Tensor, at::Tensor> Recur(const std::string& rule, const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v, const RecurOptions& o) {
  return RecurOp(rule, q, k, v, o.gamma, o.mu, o.igate, o.fgate, o.state, o.cu_seqlens);
}

TORCH_LIBRARY(lattice, m) {
  m.def(
      "scan(Tensor q, Tensor k, Tensor v, Tensor gamma, Tensor? mu, Tensor state, Tensor? lam=None, "
      "Tensor? cu_seqlens=None, str objective=\"dec\", str normalize=\"token\", str method=\"exact\", "
      "int chunk=1, int sweeps=1, float? tolerance=None) -> (Tensor y, Tensor state_out)",
      ScanOp);
  m.def(
      "recur(str rule, Tensor q, Tensor k, Tensor v, Tensor? gamma=None, Tensor? mu=None, Tensor? "
      "igate=None, "
      "Tensor? fgate=None, Tensor? state=None, Tensor? cu_seqlens=None) -> (Tensor y, Tensor state_out)",
      RecurOp);
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, Tensor? past_k=None, Tensor? past_v=None, "
      "Tensor? cu_seqlens=None) -> (Tensor y, Tensor keys, Tensor values)",
      Attention);
  m.def("rules() -> str[]", [] {
    std::vector<std::string> names;
    for (const kernels::RuleInfo& rule : kernels::Rules()) names.push_back(rule.name);
    return names;
  });
  m.def("isa() -> str", [] { return kernels::CurrentIsa(); });
  m.def("isas() -> str[]", [] { return kernels::AvailableIsas(); });
  m.def(
      "_recurrence(str rule, str normalize, Tensor q, Tensor k, Tensor v, Tensor? gamma, Tensor? mu, Tensor? "
      "lam, "
      "Tensor? igate, Tensor? fgate, Tensor state, Tensor? cu_seqlens) -> (Tensor y, Tensor state_out)");
  m.def(
      "_forward(str rule, str normalize, Tensor q, Tensor k, Tensor v, Tensor? gamma, Tensor? mu, Tensor? "
      "lam, "
      "Tensor? igate, Tensor? fgate, Tensor state, Tensor? cu_seqlens, bool keep) -> "
      "(Tensor y, Tensor state_out, Tensor kept)");
  m.def(
      "_backward(str rule, str normalize, Tensor q, Tensor k, Tensor v, Tensor? gamma, Tensor? mu, Tensor? "
      "lam, "
      "Tensor? igate, Tensor? fgate, Tensor state, Tensor? cu_seqlens, Tensor kept, Tensor dy, "
      "Tensor? dstate_out) -> (Tensor dq, Tensor dk, Tensor dv, Tensor dgamma, Tensor dmu, Tensor dlam, "
      "Tensor digate, Tensor dfgate, Tensor dstate)");
}

TORCH_LIBRARY_IMPL(lattice, CompositeExplicitAutograd, m) { m.impl("_recurrence", RecurrenceForward); }
TORCH_LIBRARY_IMPL(lattice, Autograd, m) { m.impl("_recurrence", RecurrenceAutograd); }

}  // namespace lattice
