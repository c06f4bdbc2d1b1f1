// The delta rule and its gated forms, with z = k@S:
//   deltanet        S_new = S - gamma k (z - v)^T
//   gated_deltanet  S_new = mu S - gamma k (mu z - v)^T       the memory decays before it is corrected
//   rwkv7           S_new = diag(mu) S - gamma k (z - v)^T
// In the engine's form: A = 1, mu or mu_i; B = gamma k; h = z - v or mu z - v.
#if defined(LATTICE_KERNELS_RULES_DELTA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_DELTA_INL_H_
#undef LATTICE_KERNELS_RULES_DELTA_INL_H_
#else
#define LATTICE_KERNELS_RULES_DELTA_INL_H_
#endif

#include "kernels/rules/decay-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T, Decay kDecay>
struct DeltaRule : DecayRule<T, kDecay, /*kMu=*/1> {
  enum Gate { kGamma, kMu };
  static constexpr int kStateUse = kReads;
  static constexpr bool kDecaysRead = kDecay == Decay::kScalar;  // h = mu z - v
  using Base = DecayRule<T, kDecay, kMu>;
  using Base::Base;
  using Base::d;

  void MakeStep(const Token<T>& x, Step<T>& step) {
    Base::MakeDecay(x, step);
    Scale(x.gates[kGamma], x.k, d.rows, step.B);
    const auto decay = Set(kDecaysRead ? x.gates[kMu] : T(1));
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      Store(hn::MulSub(decay, Load(step.z + j), Load(x.v + j)), step.h + j);
    }
  }

  void Adjoint(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    Base::DecayAdjoint(g);
    if constexpr (kDecaysRead) g.dgates[kMu] += Dot(g.dh, step.z, d.stride);
    g.dgates[kGamma] += Dot(x.k, g.dB, d.rows);
    Scale(T(-1), g.dh, d.stride, g.dv);
    Scale(kDecaysRead ? x.gates[kMu] : T(1), g.dh, d.stride, g.dz);
  }

  // dk has two terms: from B = gamma k, and from the weights k of z = k@S.
  HWY_INLINE void WeightsAdjoint(size_t i, Vec<T> dots, const Token<T>& x, const Step<T>&, StepGrad<T>& g) {
    Store(hn::MulAdd(Set(x.gates[kGamma]), Load(g.dB + i), dots), g.dk + i);
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_DELTA_INL_H_
