// The exact Lattice step and its adjoint, for the three objectives. The letters are those of
// docs/recurrence.md; r_i and g_i are only named here.
//
//   s_i = sqrt(|S_i|^2 + eps^2)     Phi_i = S_i / s_i     eps = 1e-6
//   Dec: h = k@Phi - v, c = k       Sim: h = -v, c = k    Enc: h = v, c = Phi@v - k
//   a_i = <Phi_i, h>    ch_i = c_i / s_i    r_i = |h|^2 - a_i^2 = dsq_i / ch_i^2    g_i = gamma ch_i
//   beta_i = s_i / sqrt(mu^2 s_i^2 + g_i^2 r_i)   (token)   or 1 (none)
//   S_new,i = beta_i (mu S_i - g_i (h - a_i Phi_i)) = A_i S_i - B_i h
//   A_i = beta_i (mu + g_i a_i / s_i)    B_i = beta_i g_i
//
// The engine reads z = k@Phi (Dec only) and the dots <S_i, h> from the state; all else is one loop over
// slots. In the code `inv` is 1/s_i and `gi` is g_i/s_i.
#if defined(LATTICE_KERNELS_RULES_LATTICE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_RULES_LATTICE_INL_H_
#undef LATTICE_KERNELS_RULES_LATTICE_INL_H_
#else
#define LATTICE_KERNELS_RULES_LATTICE_INL_H_
#endif

#include <cmath>

#include "kernels/engine/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T, Objective kObjective>
struct LatticeRule : RuleBase<T> {
  static constexpr int kGates = 2;  // gamma and mu
  static constexpr bool kMeasures = true;
  static constexpr bool kDec = kObjective == Objective::kDec;
  static constexpr bool kEnc = kObjective == Objective::kEnc;
  static constexpr int kStateUse = kDots | kScales | (kDec ? kReads : 0);

  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;
  using RuleBase<T>::p;

  // What the step saves for its adjoint: a, ch, r and beta of every slot; |h|^2, and whether Refine has work.
  enum Aux { kA, kCh, kR, kBeta };
  enum Scalar { kHh, kRefine };

  // Dec reads z = k@Phi = (k/s)@S, and its ch is k/s as well.
  HWY_INLINE const T* Weights(const Token<T>&, const Step<T>& step) const { return step.aux[kCh]; }
  // 1/s, and ch = k/s where c is k.
  HWY_INLINE void Begin(const Token<T>& x, Step<T>& step) {
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto inv = step.lengths.Invert(i);
      if constexpr (!kEnc) Store(hn::Mul(Load(x.k + i), inv), step.aux[kCh] + i);
    }
  }

  // h
  HWY_INLINE void MakeTarget(const Token<T>& x, Step<T>& step) {
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto v = Load(x.v + j);
      Store(kEnc ? v : kDec ? hn::Sub(Load(step.z + j), v) : hn::Neg(v), step.h + j);
    }
  }

  void MakeStep(const Token<T>& x, Step<T>& step) { MakeStepAs(x, p.normalize == Normalize::kToken, step); }

  // A, B and what the adjoint needs; `token`: with token normalisation, else beta = 1.
  HWY_INLINE void MakeStepAs(const Token<T>& x, bool token, Step<T>& step) {
    step.scalar[kHh] = Dot(step.h, step.h, d.stride);
    const auto hh = Set(step.scalar[kHh]);
    auto worst = Set(T(-1));
    for (size_t i = 0; i < d.rows; i += kLanes<T>)
      worst = hn::Max(worst, MakeCoefficients(i, hh, x, token, step));
    step.scalar[kRefine] = !hn::AllFalse(Tag<T>(), hn::Gt(worst, hn::Zero(Tag<T>())));
  }

  // From <S_i, h> to A and B, for the slots from i on, one vector; returns their RefineScore.
  HWY_INLINE Vec<T> MakeCoefficients(size_t i, Vec<T> hh, const Token<T>& x, bool token, Step<T>& step) {
    const auto inv = Load(step.lengths.inv + i), a = hn::Mul(Load(step.dots + i), inv);
    const auto ch = kEnc ? hn::Mul(hn::Sub(a, Load(x.k + i)), inv) : Load(step.aux[kCh] + i);
    const auto r = hn::Max(hn::Zero(Tag<T>()), hn::NegMulAdd(a, a, hh));
    const auto g = hn::Mul(Set(x.gates[kGammaGate]), ch), gi = hn::Mul(g, inv);
    Store(a, step.aux[kA] + i);
    Store(r, step.aux[kR] + i);
    if constexpr (kEnc) Store(ch, step.aux[kCh] + i);
    if (token) return Rescale(i, a, r, g, gi, hh, x, step);
    Store(Set(T(1)), step.aux[kBeta] + i);
    Store(hn::MulAdd(gi, a, Set(x.gates[kMuGate])), step.A + i);
    Store(g, step.B + i);
    return Set(T(-1));
  }

  // Token normalisation: beta = 1 / sqrt(w) with w = mu^2 + (g/s)^2 r, then A = beta (mu + g a/s) and
  // B = beta g, corrected for rounding.
  //
  // Nothing corrects the length of a slot later, so the rounding errors of A add up over the tokens: computed
  // plainly in float32, lengths drifted by 1.3e-4 over 2^20 tokens. Therefore the length of the new slot is
  // computed from the rounded A and B, and both are scaled by what it lacks; A then carries only its last
  // rounding. The rounding error of 1/s is included, |S_i|^2 / s_i^2 = 1 + inv_error: a reciprocal just below
  // 1 is always rounded up, which alone made lengths drift by 1.6e-4 over 65,536 tokens with long values.
  HWY_INLINE Vec<T> Rescale(size_t i, Vec<T> a, Vec<T> r, Vec<T> g, Vec<T> gi, Vec<T> hh, const Token<T>& x,
                            Step<T>& step) {
    const auto gi2 = hn::Mul(gi, gi), w = hn::MulAdd(gi2, r, Set(x.gates[kMuGate] * x.gates[kMuGate]));
    const auto one = Set(T(1)), beta = hn::Div(one, hn::Sqrt(w));
    const auto A = hn::Mul(beta, hn::MulAdd(gi, a, Set(x.gates[kMuGate]))), B = hn::Mul(beta, g);
    Store(beta, step.aux[kBeta] + i);
    // |S_new,i|^2 / s^2 is (A - a B/s)^2 + r (B/s)^2 + inv_error A^2; it should be 1 + inv_error.
#if HWY_NATIVE_FMA
    // The first square is computed in two parts, rest + low, with the rounding errors of its operations.
    const auto Bi = hn::Mul(beta, gi), along = hn::Mul(Bi, a), rest = hn::Sub(A, along);
    const auto low = hn::Sub(hn::Sub(hn::Sub(A, rest), along), hn::MulSub(Bi, a, along));
    const auto square = hn::Mul(rest, rest), lost = hn::MulSub(rest, rest, square);
    auto deficit = hn::NegMulAdd(hn::Add(rest, rest), low, hn::Sub(hn::Sub(one, square), lost));
    deficit = hn::NegMulAdd(hn::Mul(Bi, Bi), r, deficit);
    deficit = hn::MulAdd(Load(step.lengths.inv_error + i), hn::NegMulAdd(A, A, one), deficit);
    // The length is short by half of what its square is short by.
    const auto half = hn::Mul(deficit, Set(T(0.5)));
    Store(hn::MulAdd(A, half, A), step.A + i);
    Store(hn::MulAdd(B, half, B), step.B + i);
#else
    // Without fused multiplication the rounding error of a product is unknown; float64 holds those of float32.
    Store(A, step.A + i);
    Store(B, step.B + i);
    for (size_t row = i; row < i + kLanes<T>; ++row) CorrectInDouble(row, step);
#endif
    return RefineScore(gi2, w, hh);
  }

  // The same correction of A and B of one slot.
  static HWY_INLINE void CorrectInDouble(size_t i, Step<T>& step) {
    const double A = step.A[i], B = step.B[i], Bi = B * step.lengths.inv[i], rest = A - Bi * step.aux[kA][i];
    const double deficit =
        1 - rest * rest - Bi * Bi * step.aux[kR][i] + step.lengths.inv_error[i] * (1 - A * A);
    step.A[i] = static_cast<T>(A + A * deficit / 2);
    step.B[i] = static_cast<T>(B + B * deficit / 2);
  }

  // Positive where r_i = |h|^2 - a^2 is not accurate enough. Its error is an ulp of |h|^2, which matters
  // where that is large compared with the squared length of the new slot: (g/s)^2 |h|^2 > 8 w. Also positive
  // where w is close to overflow or underflow.
  static HWY_INLINE Vec<T> RefineScore(Vec<T> gi2, Vec<T> w, Vec<T> hh) {
    const auto score = hn::NegMulAdd(Set(T(8)), w, hn::Mul(gi2, hh));
    const auto in_range = hn::And(hn::Lt(w, Set(T(1e30))), hn::Gt(w, Set(T(1e-30))));
    return hn::IfThenElse(in_range, score, Set(T(1)));
  }

  HWY_INLINE void Refine(const T* S, const Token<T>& x, Step<T>& step) {
    if (HWY_UNLIKELY(step.scalar[kRefine] != T(0))) RefineSlots(S, x, step);
  }

  // Computes the coefficients of the slots with a positive RefineScore again, in double and with r_i measured
  // from the slot itself.
  HWY_NOINLINE void RefineSlots(const T* S, const Token<T>& x, Step<T>& step) {
    HWY_ALIGN T score[kLanes<T>];
    const auto hh = Set(step.scalar[kHh]);
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto gi =
          hn::Mul(hn::Mul(Set(x.gates[kGammaGate]), Load(step.aux[kCh] + i)), Load(step.lengths.inv + i));
      const auto gi2 = hn::Mul(gi, gi),
                 w = hn::MulAdd(gi2, Load(step.aux[kR] + i), Set(x.gates[kMuGate] * x.gates[kMuGate]));
      Store(RefineScore(gi2, w, hh), score);
      for (size_t row = i; row < i + kLanes<T>; ++row) {
        if (!(score[row - i] > T(0))) continue;
        const T a = step.aux[kA][row], inv = step.lengths.inv[row];
        step.aux[kR][row] = Residual(S + row * d.stride, step.h, d.stride, a, inv);
        CoefficientsInDouble(row, x, /*measured=*/true, step);
      }
    }
  }

  // A, B and beta of one slot in double, where float32 might overflow or its rounding errors are unknown.
  // With `measured`, r comes from Residual, and less of it has to be corrected for inv_error.
  static void CoefficientsInDouble(size_t i, const Token<T>& x, bool measured, Step<T>& step) {
    const double inv = step.lengths.inv[i], inv_error = step.lengths.inv_error[i], mu = x.gates[kMuGate];
    const double g = double{x.gates[kGammaGate]} * step.aux[kCh][i], along = g * inv * step.aux[kA][i],
                 u = mu + along;
    const double w = mu * mu + g * g * inv * inv * step.aux[kR][i];
    const double more = inv_error * (u * u - w - (measured ? along * along : 0));
    const double beta = 1 / std::sqrt(std::abs(more) < w / 2 ? w + more : w);
    step.aux[kBeta][i] = static_cast<T>(beta);
    step.A[i] = static_cast<T>(beta * u);
    step.B[i] = static_cast<T>(beta * g);
  }

  // Gradients that are summed over the slots: of mu, of gamma and of |h|^2.
  struct Sums {
    Vec<T> mu, gamma, hh;
  };

  HWY_NOINLINE void AdjointSlots(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    AdjointSlotsAs(x, p.normalize == Normalize::kToken, /*ds=*/nullptr, step, g);
  }

  // From dA and dB to the gradients of the gates, of c (in dk), of the dots <S_i, h> (in P) and of s_i (in E,
  // which WeightsAdjoint completes for Dec). ds, if not null, is a gradient of s_i from elsewhere.
  HWY_INLINE void AdjointSlotsAs(const Token<T>& x, bool token, const T* ds, const Step<T>& step,
                                 StepGrad<T>& g) {
    const auto zero = hn::Zero(Tag<T>());
    Sums sums = {zero, zero, zero};
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      SlotAdjoint(i, x, token, ds == nullptr ? zero : Load(ds + i), step, g, sums);
    }
    g.dgates[kMuGate] += Total<T>(sums.mu);
    g.dgates[kGammaGate] += Total<T>(sums.gamma);
    step_dhh_ = Total<T>(sums.hh);
  }

  HWY_INLINE void SlotAdjoint(size_t i, const Token<T>& x, bool token, Vec<T> ds, const Step<T>& step,
                              StepGrad<T>& g, Sums& sums) const {
    // gc is g_i, gi is g_i/s_i.
    const auto dA = LoadSums(g.dA + i), dB = LoadSums(g.dB + i);
    const auto mu = Set(x.gates[kMuGate]), gamma = Set(x.gates[kGammaGate]), zero = hn::Zero(Tag<T>());
    const auto inv = Load(step.lengths.inv + i), a = Load(step.aux[kA] + i), ch = Load(step.aux[kCh] + i);
    const auto beta = Load(step.aux[kBeta] + i), r = Load(step.aux[kR] + i);
    const auto gc = hn::Mul(gamma, ch), gi = hn::Mul(gc, inv);
    // A = beta (mu + gi a) and B = beta gc, with beta constant.
    const auto bdA = hn::Mul(beta, dA), along = hn::Mul(bdA, gi);
    auto dgc = hn::MulAdd(bdA, hn::Mul(a, inv), hn::Mul(beta, dB)), da = along, dmu = bdA;
    if (token) {
      // beta = w^(-1/2): with dbeta = dA A/beta + dB B/beta and e = beta^3 dbeta, dw = -e/2. The terms of mu,
      // gc, a, |h|^2 and s follow from w = mu^2 + gi^2 r and r = |h|^2 - a^2; where r was cut off at zero,
      // its own gradient is zero.
      const auto dbeta = hn::MulAdd(dA, hn::MulAdd(gi, a, mu), hn::Mul(dB, gc));
      const auto e = hn::Mul(hn::Mul(beta, beta), hn::Mul(beta, dbeta));
      const auto egi = hn::Mul(e, gi), egir = hn::Mul(egi, r);
      const auto egi2 = hn::IfThenElseZero(hn::Gt(r, zero), hn::Mul(egi, gi));
      dmu = hn::NegMulAdd(e, mu, dmu);
      dgc = hn::NegMulAdd(inv, egir, dgc);
      da = hn::MulAdd(a, egi2, da);
      sums.hh = hn::NegMulAdd(Set(T(0.5)), Valid(i, egi2), sums.hh);
      ds = hn::MulAdd(inv, hn::Mul(gi, egir), ds);
    }
    const auto dch = hn::Mul(gamma, dgc), dc = hn::Mul(dch, inv);
    if constexpr (kEnc) da = hn::Add(da, dc);
    // The terms of 1/s in A, in ch = c/s and in a = <S_i, h>/s.
    ds = hn::NegMulAdd(inv, hn::MulAdd(dch, ch, hn::Mul(a, hn::Add(along, da))), ds);
    Store(kEnc ? hn::Neg(dc) : dc, g.dk + i);
    Store(hn::Mul(da, inv), g.P + i);
    Store(kDec ? ds : hn::Mul(inv, ds), g.E + i);
    sums.mu = hn::Add(sums.mu, Valid(i, dmu));
    sums.gamma = hn::Add(sums.gamma, Valid(i, hn::Mul(ch, dgc)));
  }

  // dh gets its terms from |h|^2 and from the dots (P@S, in dz), and becomes the gradient of v and of z.
  void Adjoint(const Token<T>&, const Step<T>& step, StepGrad<T>& g) {
    const auto dhh2 = Set(2 * step_dhh_);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto dh = hn::Add(hn::MulAdd(dhh2, Load(step.h + j), Load(g.dh + j)), Load(g.dz + j));
      Store(dh, g.dz + j);
      Store(kEnc ? dh : hn::Neg(dh), g.dv + j);
    }
  }

  // z = (k/s)@S: the terms of k and of s, from `dots` = <S_i, dz>.
  HWY_INLINE void WeightsAdjoint(size_t i, Vec<T> dots, const Token<T>&, const Step<T>& step,
                                 StepGrad<T>& g) {
    const auto inv = Load(step.lengths.inv + i), dk = hn::Mul(dots, inv);
    Store(hn::Add(Load(g.dk + i), dk), g.dk + i);
    Store(hn::Mul(inv, hn::NegMulAdd(dk, Load(step.aux[kCh] + i), Load(g.E + i))), g.E + i);
  }

 private:
  // x with zeros in the lanes beyond the last slot.
  HWY_INLINE Vec<T> Valid(size_t i, Vec<T> x) const {
    return i + kLanes<T> > d.slots ? hn::IfThenElseZero(hn::FirstN(Tag<T>(), d.slots - i), x) : x;
  }

  T step_dhh_ = 0;  // the gradient of |h|^2, from AdjointSlots to Adjoint
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_LATTICE_INL_H_
