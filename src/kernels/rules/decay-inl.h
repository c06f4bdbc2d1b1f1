// What the linear rules share: how the old state decays, A_i = 1, mu or mu_i, and the adjoint of that.
#if defined(LATTICE_KERNELS_RULES_DECAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_DECAY_INL_H_
#undef LATTICE_KERNELS_RULES_DECAY_INL_H_
#else
#define LATTICE_KERNELS_RULES_DECAY_INL_H_
#endif

#include "kernels/engine/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

enum class Decay { kNone, kScalar, kSlots };

// kMu is the index of the gate mu.
template <typename T, Decay kDecay, int kMu>
struct DecayRule : RuleBase<T> {
  static constexpr int kGates = kMu + (kDecay == Decay::kNone ? 0 : 1);
  static constexpr int kSlotGate = kDecay == Decay::kSlots ? kMu : -1;
  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;

  HWY_INLINE void MakeDecay(const Token<T>& x, Step<T>& step) {
    if constexpr (kDecay == Decay::kSlots) {
      Scale(T(1), x.slot_gate, d.rows, step.A);
    } else {
      Fill(kDecay == Decay::kNone ? T(1) : x.gates[kMu], d.rows, step.A);
    }
  }

  HWY_INLINE void DecayAdjoint(StepGrad<T>& g) {
    if constexpr (kDecay == Decay::kSlots) Scale(T(1), g.dA, d.rows, g.dslot_gate);
    if constexpr (kDecay == Decay::kScalar) g.dgates[kMu] += Sum(g.dA, d.rows);
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_DECAY_INL_H_
