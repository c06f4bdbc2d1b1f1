// The part that the linear rules share: how the old state fades, A = 1, mu or mu_i.
#if defined(LATTICE_KERNELS_RULES_DECAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_DECAY_INL_H_
#undef LATTICE_KERNELS_RULES_DECAY_INL_H_
#else
#define LATTICE_KERNELS_RULES_DECAY_INL_H_
#endif

#include "kernels/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

enum class Decay { kNone, kScalar, kSlots };

template <typename T, Decay kDecay>
struct DecayRule : RuleBase<T> {
  static constexpr bool kSlotMu = kDecay == Decay::kSlots;
  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;

  HWY_INLINE void MakeDecay(const Token<T>& x, Step<T>& step) {
    if constexpr (kSlotMu) {
      Scale(T(1), x.mu_slots, d.rows, step.A);
    } else {
      Fill(kDecay == Decay::kNone ? T(1) : x.mu, d.rows, step.A);
    }
  }

  HWY_INLINE void DecayAdjoint(StepGrad<T>& g) {
    if constexpr (kSlotMu) Scale(T(1), g.dA, d.rows, g.dmu_slots);
    if constexpr (kDecay == Decay::kScalar) g.dmu += Sum(g.dA, d.rows);
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_DECAY_INL_H_
