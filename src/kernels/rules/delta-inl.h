// The delta rule and its gated forms, with z = k@S:
//   deltanet        S_new = S - gamma k (z - v)^T
//   gated_deltanet  S_new = mu S - gamma k (mu z - v)^T       the memory fades before it is corrected
//   rwkv7           S_new = diag(mu) S - gamma k (z - v)^T
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
struct DeltaRule : DecayRule<T, kDecay> {
  static constexpr int kPush = kReads;
  static constexpr bool kFadesRead = kDecay == Decay::kScalar;
  using Base = DecayRule<T, kDecay>;
  using Base::Base;
  using Base::d;

  enum Aux { kZ };

  void MakeStep(const T* S, const Lengths<T>&, const Token<T>& x, Step<T>& step) {
    Base::MakeDecay(x, step);
    Scale(x.gamma, x.k, d.rows, step.B);
    ColumnSum(x.k, S, d.rows, d.stride, step.aux[kZ]);
    const auto fade = Set(kFadesRead ? x.mu : T(1));
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      Store(hn::MulSub(fade, Load(step.aux[kZ] + j), Load(x.v + j)), step.h + j);
    }
  }

  void Adjoint(const T* S, const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    Base::DecayAdjoint(g);
    if constexpr (kFadesRead) g.dmu += Dot(g.dh, step.aux[kZ], d.stride);
    Scale(T(-1), g.dh, d.stride, g.dv);
    Scale(kFadesRead ? x.mu : T(1), g.dh, d.stride, g.dz);
    RowDots(S, d.rows, d.stride, g.dz, g.dk);
    FinishKey(x, g);
  }

  // With B = gamma k and the state read at k: the gradients of k (which holds S@dz) and gamma, and W.
  HWY_INLINE void FinishKey(const Token<T>& x, StepGrad<T>& g) {
    auto dgamma = hn::Zero(Tag<T>());
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto k = Load(x.k + i), dB = Load(g.dB + i);
      dgamma = hn::MulAdd(k, dB, dgamma);
      Store(hn::MulAdd(Set(x.gamma), dB, Load(g.dk + i)), g.dk + i);
      Store(k, g.W + i);
    }
    g.dgamma += hn::GetLane(hn::SumOfLanes(Tag<T>(), dgamma));
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_DELTA_INL_H_
