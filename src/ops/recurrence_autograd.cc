// The gradient of lattice::_recurrence, and that there is no second one.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "ops/gradient.h"
#include "ops/recurrence_op.h"

namespace lattice {
namespace {

using Result = std::tuple<at::Tensor, at::Tensor>;

ForwardResult CallForward(const Call& call, bool keep) {
  static const auto op = Operator<ForwardSignature>("lattice::_forward");
  return call.Through(op, keep, /*activations=*/HasCpuKernels(call.in.q));
}

BackwardResult CallBackward(const Call& call, const at::Tensor& saved, const at::Tensor& dy,
                            const OptionalTensor& dstate_out) {
  static const auto op = Operator<BackwardSignature>("lattice::_backward");
  return call.Through(op, saved, dy, dstate_out);
}

// The call of what Inputs::Differentiable gave, with cu_seqlens behind it.
Inputs FromSaved(const variable_list& saved, size_t gates) {
  Inputs in{saved[0], saved[1], saved[2], std::vector<OptionalTensor>(gates), saved[3], {}};
  for (size_t i = 0; i < gates; ++i) in.gates[i] = IfDefined(saved[4 + i]);
  in.cu_seqlens = IfDefined(saved[4 + gates]);
  return in;
}

// dq, dk, dv, dstate and the gates' gradients in one list, those of absent gates undefined.
variable_list AsList(const Inputs& in, BackwardResult&& result) {
  auto& [dq, dk, dv, dstate, dgates] = result;
  variable_list all = {dq, dk, dv, dstate};
  for (size_t i = 0; i < dgates.size(); ++i)
    all.push_back(in.gates[i].has_value() ? dgates[i] : at::Tensor());
  return all;
}

void Record(const Call& call, const Result& result, const at::Tensor& saved) {
  const variable_list inputs = call.in.Differentiable();
  variable_list all = inputs;
  all.insert(all.end(), {call.in.cu_seqlens.value_or(at::Tensor()), saved});
  // The memory is looked up again by its name: the registry may grow meanwhile.
  const auto backward = [name = call.memory.RecurName(), how = call.how](const variable_list& x,
                                                                         const variable_list& grads) {
    const kernels::Memory& memory = MemoryNamed(name);
    const Call again(memory, how, FromSaved(x, memory.gates.size()));
    const at::Tensor dy =
        grads[0].defined() ? grads[0] : at::zeros_symint(again.in.v.sym_sizes(), again.in.v.options());
    return AsList(again.in, CallBackward(again, x.back(), dy, IfDefined(grads[1])));
  };
  RecordGradient("LatticeRecurrenceBackward", inputs, {std::get<0>(result), std::get<1>(result)}, all,
                 backward);
}

Result RecurrenceAutograd(LATTICE_RECURRENCE_PARAMETERS) {
  const Call call = LATTICE_RECURRENCE_CALL;
  const variable_list inputs = call.in.Differentiable();
  RequireNoTangents(OperatorName(call.memory), inputs);
  const bool keep = WantsGradient(inputs);
  const auto [y, state_out, saved] = [&] {
    at::AutoDispatchBelowADInplaceOrView below;
    return CallForward(call, keep);
  }();
  const Result result(y, state_out);
  if (keep) Record(call, result, saved);
  return result;
}

BackwardResult BackwardAutograd(LATTICE_RECURRENCE_PARAMETERS, const at::Tensor& saved, const at::Tensor& dy,
                                const OptionalTensor& dstate_out) {
  const Call call = LATTICE_RECURRENCE_CALL;
  BackwardResult result = [&] {
    at::AutoDispatchBelowADInplaceOrView below;
    return CallBackward(call, saved, dy, dstate_out);
  }();
  variable_list inputs = call.in.Differentiable();
  inputs.insert(inputs.end(), {dy, dstate_out.value_or(at::Tensor())});
  if (WantsGradient(inputs)) {
    const auto& [dq, dk, dv, dstate, dgates] = result;
    variable_list outputs = {dq, dk, dv, dstate};
    outputs.insert(outputs.end(), dgates.begin(), dgates.end());
    RefuseGradient(OperatorName(call.memory), inputs, outputs);
  }
  return result;
}

Result RecurrenceForward(LATTICE_RECURRENCE_PARAMETERS) {
  const auto [y, state_out, saved] = CallForward(LATTICE_RECURRENCE_CALL, /*keep=*/false);
  return {y, state_out};
}

}  // namespace

TORCH_LIBRARY_IMPL(lattice, CompositeExplicitAutograd, m) { m.impl("_recurrence", RecurrenceForward); }
TORCH_LIBRARY_IMPL(lattice, Autograd, m) {
  m.impl("_recurrence", RecurrenceAutograd);
  m.impl("_backward", BackwardAutograd);
}

}  // namespace lattice
