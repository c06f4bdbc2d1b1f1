// Linear attention and its gated forms: S_new = decay S + k v^T.
//   linear_attention  decay = 1        mamba2  decay = mu, a number        gla  decay = diag(mu)
// In the engine's form: A = decay, B = -k, h = v.
#if defined(LATTICE_KERNELS_RULES_OUTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_OUTER_INL_H_
#undef LATTICE_KERNELS_RULES_OUTER_INL_H_
#else
#define LATTICE_KERNELS_RULES_OUTER_INL_H_
#endif

#include "kernels/rules/decay-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T, Decay kDecay>
struct OuterRule : DecayRule<T, kDecay, /*kMu=*/0> {
  using Base = DecayRule<T, kDecay, 0>;
  using Base::Base;
  using Base::d;

  void MakeStep(const Token<T>& x, Step<T>& step) {
    Base::MakeDecay(x, step);
    Scale(T(-1), x.k, d.rows, step.B);
    Scale(T(1), x.v, d.stride, step.h);
  }

  void Adjoint(const Token<T>&, const Step<T>&, StepGrad<T>& g) {
    Base::DecayAdjoint(g);
    Scale(T(-1), g.dB, d.rows, g.dk);
    Scale(T(1), g.dh, d.stride, g.dv);
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_OUTER_INL_H_
