// What the forward pass of a recurrence keeps for the backward pass, in one tensor: states of all heads at
// the ends of blocks (kernels::CheckpointsOf), then notes of tokens (kernels::NotedFrom).
#ifndef LATTICE_OPS_KEPT_H_
#define LATTICE_OPS_KEPT_H_

#include <c10/core/SymInt.h>

#include <algorithm>

#include "ops/inputs.h"

namespace lattice {

inline const kernels::KernelSet& KernelsFor(const kernels::RuleInfo& rule, const Inputs& in) {
  return in.lam.has_value() ? rule.shrink_kernels : rule.kernels;
}

inline int64_t Least(int64_t a, int64_t b) { return std::min(a, b); }
inline c10::SymInt Least(const c10::SymInt& a, const c10::SymInt& b) { return a.min(b); }

// Room for it, in elements: the most there can be, told by sizes alone. For packed sequences that is what the
// worst division into sequences needs. Int is int64_t or c10::SymInt.
template <typename Int>
struct KeptRoom {
  Int states, notes;

  // N: packed sequences, or B.
  KeptRoom(const kernels::RuleInfo& rule, const Inputs& in, const Int& B, const Int& T, const Int& H,
           const Int& M, const Int& D, const Int& N) {
    const Int state_size = rule.StateSize(M, D), note_size = KernelsFor(rule, in).notes.Of(M, D);
    const Int blocks = in.cu_seqlens.has_value() ? T / kernels::kBlock : B * ((T - 1) / kernels::kBlock);
    states = blocks * H * state_size;
    notes = Least(B * T, N * kernels::MostNoted(state_size, note_size)) * H * note_size;
  }

  Int Total() const { return states + notes; }
};

}  // namespace lattice

#endif  // LATTICE_OPS_KEPT_H_
