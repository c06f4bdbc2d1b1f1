// Sizes of what the forward pass of a recurrence saves for the backward pass, in one tensor: checkpoints,
// which are the states of all heads at the ends of blocks (kernels::CheckpointsOf), then the saved
// activations of tokens (kernels::FirstSavedToken).
#ifndef LATTICE_OPS_SAVED_SIZES_H_
#define LATTICE_OPS_SAVED_SIZES_H_

#include <c10/core/SymInt.h>

#include "ops/inputs.h"

namespace lattice {

inline const kernels::KernelSet& KernelsFor(const kernels::Memory& memory, const Inputs& in) {
  const int shrink = memory.FindGate(kernels::GateRole::kShrink);
  return shrink >= 0 && in.gates[static_cast<size_t>(shrink)].has_value() ? memory.shrink_kernels
                                                                          : memory.kernels;
}

// Upper bounds in elements, which depend on the sizes of the inputs only. For packed sequences they are what
// the worst division into sequences needs.
struct SavedSizes {
  c10::SymInt checkpoints, activations;

  SavedSizes(const kernels::Memory& memory, const Inputs& in, bool with_activations) {
    const c10::SymInt B = in.q.sym_size(0), T = in.q.sym_size(1), H = in.q.sym_size(2);
    const c10::SymInt M = in.q.sym_size(3), D = in.v.sym_size(3), sequences = in.state.sym_size(0);
    const c10::SymInt state_size = memory.StateSize(M, D),
                      saved_size = KernelsFor(memory, in).saved_size.Of(M, D);
    const c10::SymInt blocks =
        in.cu_seqlens.has_value() ? T / kernels::kBlock : B * ((T - 1) / kernels::kBlock);
    checkpoints = blocks * H * state_size;
    activations = c10::SymInt(0);
    if (with_activations)
      activations = (B * T).min(sequences * kernels::MaxSavedTokens(state_size, saved_size)) * H * saved_size;
  }

  c10::SymInt Total() const { return checkpoints + activations; }
};

}  // namespace lattice

#endif  // LATTICE_OPS_SAVED_SIZES_H_
