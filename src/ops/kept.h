// What the forward pass of a recurrence keeps for the backward pass, in one tensor: states of all heads at
// the ends of blocks (kernels::CheckpointsOf), then notes of tokens (kernels::NotedFrom).
#ifndef LATTICE_OPS_KEPT_H_
#define LATTICE_OPS_KEPT_H_

#include <c10/core/SymInt.h>

#include "ops/inputs.h"

namespace lattice {

inline const kernels::KernelSet& KernelsFor(const kernels::Memory& memory, const Inputs& in) {
  const int shrink = memory.FindGate(kernels::GateRole::kShrink);
  return shrink >= 0 && in.gates[static_cast<size_t>(shrink)].has_value() ? memory.shrink_kernels
                                                                          : memory.kernels;
}

// Room for it, in elements: the most there can be, told by sizes alone. For packed sequences that is what the
// worst division into sequences needs.
struct KeptRoom {
  c10::SymInt states, notes;

  KeptRoom(const kernels::Memory& memory, const Inputs& in) {
    const c10::SymInt B = in.q.sym_size(0), T = in.q.sym_size(1), H = in.q.sym_size(2);
    const c10::SymInt M = in.q.sym_size(3), D = in.v.sym_size(3), sequences = in.state.sym_size(0);
    const c10::SymInt state_size = memory.StateSize(M, D), note_size = KernelsFor(memory, in).notes.Of(M, D);
    const c10::SymInt blocks =
        in.cu_seqlens.has_value() ? T / kernels::kBlock : B * ((T - 1) / kernels::kBlock);
    states = blocks * H * state_size;
    notes = (B * T).min(sequences * kernels::MostNoted(state_size, note_size)) * H * note_size;
  }

  c10::SymInt Total() const { return states + notes; }
};

}  // namespace lattice

#endif  // LATTICE_OPS_KEPT_H_
