// The Lattice step with l1 shrinkage (`lam` of docs/recurrence.md):
//   Z = diag(A) S - B h^T with beta = 1     Y = sign(Z) max(|Z| - gamma lam, 0)     S_new = diag(beta) Y
// Pythagoras does not hold after the shrinkage, so the length is measured:
//   beta_i = s_i / sqrt(|Y_i|^2 + eps^2)
#if defined(LATTICE_KERNELS_RULES_LATTICE_SHRINK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_LATTICE_SHRINK_INL_H_
#undef LATTICE_KERNELS_RULES_LATTICE_SHRINK_INL_H_
#else
#define LATTICE_KERNELS_RULES_LATTICE_SHRINK_INL_H_
#endif

#include "kernels/rules/lattice-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// S_new = Y: the update, then soft thresholding.
template <typename T>
HWY_NOINLINE void SoftThresholdUpdate(const Dims<T>& d, const T* S, const Step<T>& step, T threshold,
                                      T* S_new) {
  const auto t = Set(threshold), zero = hn::Zero(Tag<T>());
  for (size_t i = 0; i < d.rows; ++i) {
    const auto a = Set(step.A[i]), b = Set(step.B[i]);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto z = hn::NegMulAdd(b, Load(step.h + j), hn::Mul(a, Load(S + i * d.stride + j)));
      const auto size = hn::Sub(hn::Abs(z), t);
      // Not Max(size, 0), so that a NaN stays NaN.
      const auto y = hn::IfThenElse(hn::Le(size, zero), zero, hn::CopySign(size, z));
      Store(y, S_new + i * d.stride + j);
    }
  }
}

// The adjoint of thresholding and rescaling: G, the gradient of S_new, becomes dZ, which is
// beta G + scale S_new where Z passed the threshold and zero elsewhere. Returns sum dZ sign(Z), minus the
// gradient of the threshold.
template <typename T>
HWY_NOINLINE T SoftThresholdAdjoint(const Dims<T>& d, const T* S_new, const T* beta, const T* scale, T* G) {
  const auto zero = hn::Zero(Tag<T>());
  auto signed_sum = zero;
  for (size_t i = 0; i < d.rows; ++i) {
    const auto b = Set(beta[i]), c = Set(scale[i]);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      T* g = G + i * d.stride + j;
      const auto s = Load(S_new + i * d.stride + j);
      const auto dz = hn::IfThenElse(hn::Eq(s, zero), zero, hn::MulAdd(b, Load(g), hn::Mul(c, s)));
      Store(dz, g);
      signed_sum = hn::Add(signed_sum, hn::Mul(hn::CopySign(Set(T(1)), s), dz));
    }
  }
  return Total<T>(signed_sum);
}

template <typename T, Objective kObjective>
struct LatticeShrinkRule : LatticeRule<T, kObjective> {
  using Base = LatticeRule<T, kObjective>;
  static constexpr int kGates = 3;  // gamma, mu and lam
  static constexpr bool kShrinks = true;
  using Base::Base;
  using Base::d;
  using Base::p;

  void MakeStep(const Token<T>& x, Step<T>& step) { Base::MakeStepAs(x, /*token=*/false, step); }

  // Computes S_new = Y and beta; the engine's update then multiplies by beta.
  void Shrink(const T* S, const Token<T>& x, Step<T>& step, T* S_new) {
    T *beta = step.aux[kRescale], *length = step.aux[kLength];
    SoftThresholdUpdate(d, S, step, x.gates[kGammaGate] * x.gates[kLamGate], S_new);
    RowNorms(S_new, d.rows, d.stride, length);
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto m = Lengths<T>::Of(Load(length + i));
      Store(m, length + i);
      Store(PerToken() ? hn::Div(Lengths<T>::Of(Load(step.lengths.norms + i)), m) : Set(T(1)), beta + i);
    }
  }
  const T* Rescaling(const Step<T>& step) const { return step.aux[kRescale]; }
  const T* Zeros(const Step<T>& step) const { return step.aux[kZero]; }

  // G, the gradient of S_new, becomes that of Z. `ds` is the gradient of s_i, which beta contains.
  void ShrinkAdjoint(const T* S_new, const Token<T>& x, Step<T>& step, T* G, StepGrad<T>& g) {
    const T *beta = step.aux[kRescale], *length = step.aux[kLength];
    T *scale = g.P, *ds = step.aux[kDs];
    // dA becomes <G_i, S_new,i>, which divided by beta_i is the gradient of beta_i.
    CoefficientGrads(S_new, d.rows, d.stride, Zeros(step), step.h, G, g.dA, g.dB, g.dh);
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto m = Load(length + i);
      const auto dbeta = PerToken() ? hn::Div(LoadSums(g.dA + i), Load(beta + i)) : hn::Zero(Tag<T>());
      Store(hn::Div(dbeta, m), ds + i);
      Store(hn::Neg(hn::Div(dbeta, hn::Mul(m, m))), scale + i);
    }
    d.ZeroTail(scale);
    const T dthreshold = -SoftThresholdAdjoint(d, S_new, beta, scale, G);
    g.dgates[kGammaGate] += dthreshold * x.gates[kLamGate];
    g.dgates[kLamGate] += dthreshold * x.gates[kGammaGate];
  }

  HWY_NOINLINE void AdjointSlots(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    Base::AdjointSlotsAs(x, /*token=*/false, step.aux[kDs], step, g);
  }

 private:
  enum Aux { kRescale = 4, kLength, kZero, kDs };

  bool PerToken() const { return p.normalize == Normalize::kToken; }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_LATTICE_SHRINK_INL_H_
