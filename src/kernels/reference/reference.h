// Reference implementations of the recurrences: the equations of docs/recurrence.md as plain loops, with
// which tests compare the kernels.
//
// A rule has two functions for one token of one head: its step, and the adjoint of the step, derived by hand.
// The states of all tokens are stored, so the adjoint recomputes everything from S. Slow, single-threaded,
// allocating.
//
// Letters: M slots, D head width, S [M,D] with one row per slot; the state of a rule may have more numbers
// after S.
#ifndef LATTICE_KERNELS_REFERENCE_REFERENCE_H_
#define LATTICE_KERNELS_REFERENCE_REFERENCE_H_

#include <string>

#include "kernels/problem.h"

namespace lattice::kernels {

// Compute all cells of the problem as the rule's kernels do; checkpoints and saved activations are neither
// read nor written. Throw Error when the rule has no reference.
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
  const T* slot_gate = nullptr;  // [M], the gate with one value per slot
  Normalize normalize = Normalize::kToken;
};

// Gradients of a token's inputs; zeros when the adjoint is called, which adds to them.
template <typename T>
struct ReferenceGrad {
  T *dq, *dk, *dv, *dslot_gate;
  T dgates[kMaxGates] = {};
};

template <typename T>
struct ReferenceRule {
  // S_new and y from S.
  void (*step)(const ReferenceToken<T>& x, const T* S, T* S_new, T* y) = nullptr;
  // dS and g from dy and dS_new. dS_new is the gradient from later tokens only, without the q dy^T of
  // y = q@S_new.
  void (*adjoint)(const ReferenceToken<T>& x, const T* S, const T* dS_new, const T* dy, T* dS,
                  ReferenceGrad<T>& g) = nullptr;
};

// Adds the reference of a rule that the library does not have. Throws Error when the name is taken. Not
// thread-safe.
void RegisterReference(const std::string& rule, ReferenceRule<float> f32, ReferenceRule<double> f64);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_REFERENCE_REFERENCE_H_
