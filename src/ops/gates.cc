#include "ops/gates.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "base/error.h"
#include "kernels/registry.h"
#include "ops/dispatch.h"
#include "ops/inputs.h"

namespace lattice {

using kernels::GateForm;

GateValue MakeGate(GateForm form, const at::Tensor& projected, int64_t heads,
                   const OptionalTensor& log_decay) {
  switch (form) {
    case GateForm::kNone:
      break;
    case GateForm::kSigmoid:
      return {at::sigmoid(projected), {}};
    case GateForm::kLinear:
      return {projected, {}};
    case GateForm::kDecay: {
      TORCH_CHECK_VALUE(log_decay.has_value(), "[gates] a decay gate needs log_decay [H]");
      const at::Tensor step = at::softplus(projected);
      return {at::exp(-at::exp(*log_decay) * step), step};
    }
    case GateForm::kSlotSigmoid: {
      // sigmoid^(1/16) by its logarithm: no infinite slope where the sigmoid underflows.
      const at::Tensor value = at::exp(at::log_sigmoid(projected) * kernels::kSlotGatePower);
      return {value.view_symint({value.sym_size(0), value.sym_size(1), heads, value.sym_size(2) / heads}),
              {}};
    }
  }
  return {};
}

namespace {

// The gates that a block makes, in the order of the memory's description, then the step of a decay gate where it
// scales the values.
std::vector<at::Tensor> GatesOp(const std::string& name, at::TensorList projected, int64_t heads,
                                const OptionalTensor& log_decay) {
  const kernels::Memory& memory = kernels::FindMemory(name);
  for (const at::Tensor& x : projected) RequireOneDevice("[gates]", {projected[0], x, log_decay});
  std::vector<at::Tensor> out;
  at::Tensor step;
  for (const kernels::GateInfo& gate : memory.gates) {
    if (gate.form == GateForm::kNone) continue;
    TORCH_CHECK_VALUE(out.size() < projected.size(), "[gates] ", name, " has more gates than the ",
                      projected.size(), " projections given; ", GatesText(memory));
    const at::Tensor& x = projected[out.size()];
    const GateValue made = MakeGate(gate.form, x, heads, log_decay);
    if (made.step.defined()) step = made.step;
    // The results of an operator are new tensors.
    out.push_back(made.value.is_same(x) ? x.clone() : made.value);
  }
  TORCH_CHECK_VALUE(out.size() == projected.size(), "[gates] ", name, " makes ", out.size(), " gates, but ",
                    projected.size(), " projections were given");
  if (memory.step_scales_values) out.push_back(step);
  return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("gates(str memory, Tensor[] projected, int heads, Tensor? log_decay=None) -> Tensor[]", GatesOp);
}

}  // namespace lattice
