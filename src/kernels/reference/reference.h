// The recurrences as they are written down (docs/recurrence.md), one number at a time: the judge of the
// kernels.
//
// A rule is stated twice, both times as plain loops over one token of one head: its step, and the adjoint of
// the step derived by hand. All states of a sequence are kept, so the adjoint starts from S and nothing else.
// For tests: slow, single-threaded, allocating.
//
// Letters: M slots, D head width, S [M,D] one row a slot; a rule may keep more numbers behind S in its state.
#ifndef LATTICE_KERNELS_REFERENCE_REFERENCE_H_
#define LATTICE_KERNELS_REFERENCE_REFERENCE_H_

#include <string>

#include "kernels/problem.h"

namespace lattice::kernels {

// All cells of the problem, as the rule's kernels would compute them; checkpoints are neither read nor
// written. Throws Error when the rule has no reference.
template <typename T>
void ReferenceForward(const std::string& rule, const ForwardProblem<T>& p);
template <typename T>
void ReferenceBackward(const std::string& rule, const BackwardProblem<T>& p);

// One token of one head. Gates that the problem does not have are 1.
template <typename T>
struct ReferenceToken {
  int64_t M, D;
  const T *q, *k, *v;  // [M], [M], [D]
  T gates[kMaxGates] = {1, 1, 1, 1};
  bool given[kMaxGates] = {};    // whether the problem has the gate
  const T* slot_gate = nullptr;  // [M], the gate that has a value a slot
  Normalize normalize = Normalize::kToken;
};

// Gradients of a token's inputs, zero when an adjoint gets them.
template <typename T>
struct ReferenceGrad {
  T *dq, *dk, *dv, *dslot_gate;
  T dgates[kMaxGates] = {};
};

template <typename T>
struct ReferenceRule {
  // S_new and y from S.
  void (*step)(const ReferenceToken<T>& x, const T* S, T* S_new, T* y) = nullptr;
  // dS and g from dy and dS_new, which is the gradient from later tokens: without what y = q@S_new adds to
  // it.
  void (*adjoint)(const ReferenceToken<T>& x, const T* S, const T* dS_new, const T* dy, T* dS,
                  ReferenceGrad<T>& g) = nullptr;
};

// States a rule that the library does not have. Throws Error when the name is taken. Not thread-safe.
void RegisterReference(const std::string& rule, ReferenceRule<float> f32, ReferenceRule<double> f64);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_REFERENCE_REFERENCE_H_
