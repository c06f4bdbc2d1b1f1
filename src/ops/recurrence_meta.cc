// Shapes without data, for torch.compile, torch.export and fake tensors.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/recurrence_op.h"
#include "ops/saved_sizes.h"

namespace lattice {
namespace {

ForwardResult Forward(LATTICE_RECURRENCE_PARAMETERS, bool keep, bool activations) {
  const Call call = LATTICE_RECURRENCE_CALL;
  CheckShapes(call.memory, call.in);
  const SavedSizes sizes(call.memory, call.in, activations);
  const auto options = state.options();
  return {at::empty_symint(v.sym_sizes(), v.options()), at::empty_symint(state.sym_sizes(), options),
          at::empty_symint({keep ? sizes.Total() : c10::SymInt(0)}, options)};
}

BackwardResult Backward(LATTICE_RECURRENCE_PARAMETERS, const at::Tensor&, const at::Tensor&,
                        const OptionalTensor&) {
  const Call call = LATTICE_RECURRENCE_CALL;
  const auto like = [&](const at::Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); };
  std::vector<at::Tensor> dgates;
  for (const OptionalTensor& gate : call.in.gates)
    dgates.push_back(gate.has_value() ? like(*gate) : at::empty({0}, state.options()));
  return {like(q), like(k), like(v), like(state), dgates};
}

}  // namespace

TORCH_LIBRARY_IMPL(lattice, Meta, m) {
  m.impl("_forward", Forward);
  m.impl("_backward", Backward);
}

}  // namespace lattice
