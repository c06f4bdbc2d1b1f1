// The arguments of the operators _recurrence, _forward and _backward, which carry a recurrence through the
// dispatcher. They are spelled here and nowhere else; everything else passes Inputs.
#ifndef LATTICE_OPS_RECURRENCE_OP_H_
#define LATTICE_OPS_RECURRENCE_OP_H_

#include <string>
#include <tuple>
#include <vector>

#include "ops/inputs.h"
#include "ops/operator.h"

#define LATTICE_RECURRENCE_SCHEMA                                                            \
  "str memory, str normalize, Tensor q, Tensor k, Tensor v, Tensor?[] gates, Tensor state, " \
  "Tensor? cu_seqlens"
#define LATTICE_RECURRENCE_PARAMETERS                                                              \
  const std::string &name, const std::string &normalize, const at::Tensor &q, const at::Tensor &k, \
      const at::Tensor &v, const GateList &gates, const at::Tensor &state, const OptionalTensor &cu_seqlens

namespace lattice {

// y in the type of v, the final state, and what is saved for the backward pass in the type of the state.
using ForwardResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
// dq, dk, dv, dstate, each in the type of its input, and a gradient for every gate: empty ([0]) where the gate is left out.
using BackwardResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, std::vector<at::Tensor>>;

using RecurrenceSignature = std::tuple<at::Tensor, at::Tensor>(LATTICE_RECURRENCE_PARAMETERS);
// `keep`: a backward pass will follow, for which checkpoints are saved, and with `activations` also those of tokens. The
// operator is told, because its shape function cannot see the device: to it fake tensors of all are meta tensors.
using ForwardSignature = ForwardResult(LATTICE_RECURRENCE_PARAMETERS, bool keep, bool activations);
using BackwardSignature = BackwardResult(LATTICE_RECURRENCE_PARAMETERS, const at::Tensor& saved,
                                         const at::Tensor& dy, const OptionalTensor& dstate_out);

// The arguments of a call: which memory, how it normalises, and its tensors.
struct Call {
  const kernels::Memory& memory;
  std::string how;  // the word for Normalize
  Inputs in;

  Call(const kernels::Memory& which, std::string normalize, Inputs inputs)
      : memory(which), how(std::move(normalize)), in(std::move(inputs)) {}
  explicit Call(LATTICE_RECURRENCE_PARAMETERS) : memory(MemoryNamed(name)), how(normalize) {
    in = {q, k, v, GatesOf(memory, gates), state, cu_seqlens};
  }

  // run(memory, normalize, q, k, v, gates, state, cu_seqlens, more...), run being one of the operators.
  template <class Op, typename... More>
  auto Through(const Op& op, const More&... more) const {
    return op.call(memory.RecurName(), how, in.q, in.k, in.v, in.GatesAsList(), in.state, in.cu_seqlens,
                   more...);
  }
};

// The arguments of the enclosing function as a Call.
#define LATTICE_RECURRENCE_CALL Call(name, normalize, q, k, v, gates, state, cu_seqlens)

}  // namespace lattice

#endif  // LATTICE_OPS_RECURRENCE_OP_H_
