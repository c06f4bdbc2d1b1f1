// TTT with a normalised read: one exact gradient step per token on |z/|z| - v|^2 / 2.
//   z = k@S    s = sqrt(|z|^2 + eps^2)    zh = z/s    e = zh - v
//   h = (e - zh <zh,e>) / s    S_new = S - gamma k h^T
// In the engine's form: A = 1, B = gamma k.
#if defined(LATTICE_KERNELS_RULES_TTT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_TTT_INL_H_
#undef LATTICE_KERNELS_RULES_TTT_INL_H_
#else
#define LATTICE_KERNELS_RULES_TTT_INL_H_
#endif

#include <cmath>

#include "kernels/rules/delta-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
struct TttRule : DeltaRule<T, Decay::kNone> {
  using Base = DeltaRule<T, Decay::kNone>;
  using Base::Base;
  using Base::d;
  using Base::kGamma;

  // Saved for the adjoint: zh and e, s and p = <zh,e>.
  enum Aux { kZh, kE };
  enum Scalar { kS, kP };

  void MakeStep(const Token<T>& x, Step<T>& step) {
    T *zh = step.aux[kZh], *e = step.aux[kE];
    Base::MakeDecay(x, step);
    Scale(x.gates[kGamma], x.k, d.rows, step.B);
    const T s = std::sqrt(Dot(step.z, step.z, d.stride) + T(1e-12));
    Scale(T(1) / s, step.z, d.stride, zh);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) Store(hn::Sub(Load(zh + j), Load(x.v + j)), e + j);
    const T along = Dot(zh, e, d.stride);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      Store(hn::Mul(Set(T(1) / s), hn::NegMulAdd(Set(along), Load(zh + j), Load(e + j))), step.h + j);
    }
    step.scalar[kS] = s;
    step.scalar[kP] = along;
  }

  void Adjoint(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    const T *zh = step.aux[kZh], *e = step.aux[kE];
    const T s = step.scalar[kS], along = step.scalar[kP];
    g.dgates[kGamma] += Dot(x.k, g.dB, d.rows);
    // h = u/s with u = e - zh p and p = <zh,e>.
    Scale(T(1) / s, g.dh, d.stride, g.dh);  // du
    T ds = -Dot(g.dh, step.h, d.stride);
    const T dp = -Dot(g.dh, zh, d.stride);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto du = Load(g.dh + j);
      const auto de = hn::MulAdd(Set(dp), Load(zh + j), du);
      Store(hn::Neg(de), g.dv + j);
      // dzh, with its terms from e, from p and from u
      Store(hn::Add(de, hn::MulAdd(Set(dp), Load(e + j), hn::Mul(Set(-along), du))), g.dz + j);
    }
    // zh = z/s and s = |z| give dz = dzh/s + ds zh.
    Scale(T(1) / s, g.dz, d.stride, g.dz);
    ds -= Dot(g.dz, zh, d.stride);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      Store(hn::MulAdd(Set(ds), Load(zh + j), Load(g.dz + j)), g.dz + j);
    }
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_TTT_INL_H_
