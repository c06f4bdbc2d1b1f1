// A delta rule whose write strength grows with the error: an error of length 1 is half corrected, a small one
// hardly.
//   e = k@S - v     r = |e|^2     n = r / (1 + r)     S_new = S - gamma n k e^T
// In the engine's form, S_new = diag(A) S - B h^T, this is A = 1, B = gamma n k, h = e.
#if defined(LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_INL_H_
#undef LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_INL_H_
#else
#define LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_INL_H_
#endif

#include "kernels/engine/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
struct SurpriseRule : RuleBase<T> {
  static constexpr int kStateUse = kReads;  // S is read as k@S: its gradient gains k dz^T
  static constexpr int kGates = 1;
  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;

  enum Gate { kGamma };
  enum Scalar { kR };

  void MakeStep(const Token<T>& x, Step<T>& step) {
    T* e = step.h;
    for (size_t j = 0; j < d.stride; j += kLanes<T>) Store(hn::Sub(Load(step.z + j), Load(x.v + j)), e + j);
    const T r = Dot(e, e, d.stride);
    Fill(T(1), d.rows, step.A);
    Scale(x.gates[kGamma] * Novelty(r), x.k, d.rows, step.B);
    step.scalar[kR] = r;
  }

  void Adjoint(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    const T r = step.scalar[kR], n = Novelty(r);
    const T k_dB = Dot(x.k, g.dB, d.rows);
    g.dgates[kGamma] += n * k_dB;
    const T dr = x.gates[kGamma] * k_dB / ((1 + r) * (1 + r));
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto de = hn::MulAdd(Set(2 * dr), Load(step.h + j), Load(g.dh + j));
      Store(de, g.dz + j);
      Store(hn::Neg(de), g.dv + j);
    }
  }

  // dk_i, with its terms from B = gamma n k and from z = k@S; S_dz is <S_i, dz>, which the engine computes.
  HWY_INLINE void WeightsAdjoint(size_t i, Vec<T> S_dz, const Token<T>& x, const Step<T>& step,
                                 StepGrad<T>& g) {
    Store(hn::MulAdd(Set(x.gates[kGamma] * Novelty(step.scalar[kR])), Load(g.dB + i), S_dz), g.dk + i);
  }

 private:
  static T Novelty(T r) { return r / (1 + r); }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_EXAMPLES_NEW_MEMORY_SURPRISE_INL_H_
