// The exact Lattice step and its adjoint (docs/recurrence.md), for the three objectives.
//
//   s_i = sqrt(|S_i|^2 + eps^2)     Phi_i = S_i / s_i     eps = 1e-6
//   Dec: h = k@Phi - v, c = k       Sim: h = -v, c = k    Enc: h = v, c = Phi@v - k
//   a_i = <Phi_i, h>    ch_i = c_i / s_i    r_i = |h|^2 - a_i^2
//   beta_i = s_i / sqrt(mu^2 s_i^2 + gamma^2 ch_i^2 r_i)   (token)   or 1 (none)
//   S_new,i = beta_i (mu S_i - gamma ch_i (h - a_i Phi_i)) = A_i S_i - B_i h
//   A_i = beta_i (mu + gamma ch_i a_i / s_i)    B_i = beta_i gamma ch_i
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
  static constexpr int kPush = kDots | kScales | (kDec ? kReads : 0);

  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;
  using RuleBase<T>::p;

  enum Aux { kA, kCh, kR, kBeta };
  enum Scalar { kHh, kExcess };

  // Dec reads z = k@Phi, and its ch is k/s as well.
  HWY_INLINE const T* Weights(const Token<T>&, const Step<T>& step) const { return step.aux[kCh]; }
  HWY_INLINE void Begin(const Token<T>& x, Step<T>& step) {
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto inv = step.lengths.Invert(i);
      if constexpr (!kEnc) Store(hn::Mul(Load(x.k + i), inv), step.aux[kCh] + i);
    }
  }

  HWY_INLINE void MakeTarget(const Token<T>& x, Step<T>& step) {
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto v = Load(x.v + j);
      Store(kEnc ? v : kDec ? hn::Sub(Load(step.z + j), v) : hn::Neg(v), step.h + j);
    }
  }

  void MakeStep(const Token<T>& x, Step<T>& step) { MakeStepAs(x, p.normalize == Normalize::kToken, step); }

  HWY_INLINE void MakeStepAs(const Token<T>& x, bool token, Step<T>& step) {
    step.scalar[kHh] = Dot(step.h, step.h, d.stride);
    const auto hh = Set(step.scalar[kHh]);
    auto worst = Set(T(-1));
    for (size_t i = 0; i < d.rows; i += kLanes<T>) worst = hn::Max(worst, Aim(i, hh, x, token, step));
    step.scalar[kExcess] = !hn::AllFalse(Tag<T>(), hn::Gt(worst, hn::Zero(Tag<T>())));
  }

  // A vector of slots from <S_i, h> to A and B; returns their Excess.
  HWY_INLINE Vec<T> Aim(size_t i, Vec<T> hh, const Token<T>& x, bool token, Step<T>& step) {
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

  // w = mu^2 + (g/s)^2 r, beta = 1 / sqrt(w), A = beta (mu + g a/s) and B = beta g, where g = gamma ch.
  //
  // A slot's length is never corrected later, so the rounding of A adds up over the tokens: computed plainly
  // in float32, lengths wandered by 1.3e-4 over 2^20 tokens. Therefore the new slot's length is computed from
  // A and B as they are, and both are scaled by what it lacks; A then carries one rounding, its last. With it
  // goes what 1/s misses, |S_i|^2 / s_i^2 = 1 + miss: just below 1 it is always rounded up (1.6e-4 over
  // 65,536 tokens with long values).
  HWY_INLINE Vec<T> Rescale(size_t i, [[maybe_unused]] Vec<T> a, Vec<T> r, [[maybe_unused]] Vec<T> g,
                            Vec<T> gi, Vec<T> hh, const Token<T>& x, Step<T>& step) {
    const auto gi2 = hn::Mul(gi, gi), w = hn::MulAdd(gi2, r, Set(x.gates[kMuGate] * x.gates[kMuGate]));
#if HWY_TARGET == HWY_SCALAR  // what a product loses is not known
    WideCoefficients(i, x, /*measured=*/false, step);
#else
    const auto one = Set(T(1)), beta = hn::Div(one, hn::Sqrt(w));
    const auto A = hn::Mul(beta, hn::MulAdd(gi, a, Set(x.gates[kMuGate]))), B = hn::Mul(beta, g),
               Bi = hn::Mul(beta, gi);
    // The new length, squared and over s^2, is (A - a B/s)^2 + r (B/s)^2 + miss A^2; it should be 1 + miss.
    const auto along = hn::Mul(Bi, a), rest = hn::Sub(A, along);
    const auto low = hn::Sub(hn::Sub(hn::Sub(A, rest), along), hn::MulSub(Bi, a, along));
    const auto square = hn::Mul(rest, rest), lost = hn::MulSub(rest, rest, square);
    auto lack = hn::NegMulAdd(hn::Add(rest, rest), low, hn::Sub(hn::Sub(one, square), lost));
    lack = hn::NegMulAdd(hn::Mul(Bi, Bi), r, lack);
    lack = hn::MulAdd(Load(step.lengths.miss + i), hn::NegMulAdd(A, A, one), lack);
    const auto half = hn::Mul(lack, Set(T(0.5)));
    Store(beta, step.aux[kBeta] + i);
    Store(hn::MulAdd(A, half, A), step.A + i);
    Store(hn::MulAdd(B, half, B), step.B + i);
#endif
    return Excess(gi2, w, hh);
  }

  // Positive where r_i is not good enough. It carries an error of an ulp of |h|^2, which matters where that
  // is large against the length of the new slot: (g/s)^2 |h|^2 > 8 w. A w near the end of the range counts
  // too, and one of zero.
  static HWY_INLINE Vec<T> Excess(Vec<T> gi2, Vec<T> w, Vec<T> hh) {
    const auto excess = hn::NegMulAdd(Set(T(8)), w, hn::Mul(gi2, hh));
    const auto in_range = hn::And(hn::Lt(w, Set(T(1e30))), hn::Gt(w, Set(T(1e-30))));
    return hn::IfThenElse(in_range, excess, Set(T(1)));
  }

  HWY_INLINE void Refine(const T* S, const Token<T>& x, Step<T>& step) {
    if (HWY_UNLIKELY(step.scalar[kExcess] != T(0))) RefineSlots(S, x, step);
  }

  // Once more the coefficients of the slots that have an Excess, in double and with r_i as it should be.
  HWY_NOINLINE void RefineSlots(const T* S, const Token<T>& x, Step<T>& step) {
    HWY_ALIGN T excess[kLanes<T>];
    const auto hh = Set(step.scalar[kHh]);
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto gi =
          hn::Mul(hn::Mul(Set(x.gates[kGammaGate]), Load(step.aux[kCh] + i)), Load(step.lengths.inv + i));
      const auto gi2 = hn::Mul(gi, gi),
                 w = hn::MulAdd(gi2, Load(step.aux[kR] + i), Set(x.gates[kMuGate] * x.gates[kMuGate]));
      Store(Excess(gi2, w, hh), excess);
      for (size_t row = i; row < i + kLanes<T>; ++row) {
        if (!(excess[row - i] > T(0))) continue;
        const T a = step.aux[kA][row], inv = step.lengths.inv[row];
        step.aux[kR][row] = Residual(S + row * d.stride, step.h, d.stride, a, inv);
        WideCoefficients(row, x, /*measured=*/true, step);
      }
    }
  }

  // The coefficients of one slot in double, where float32 might overflow or nothing tells what it loses. An r
  // that was measured misses less.
  static void WideCoefficients(size_t i, const Token<T>& x, bool measured, Step<T>& step) {
    const double inv = step.lengths.inv[i], miss = step.lengths.miss[i], mu = x.gates[kMuGate];
    const double g = double{x.gates[kGammaGate]} * step.aux[kCh][i], along = g * inv * step.aux[kA][i],
                 u = mu + along;
    const double w = mu * mu + g * g * inv * inv * step.aux[kR][i];
    const double more = miss * (u * u - w - (measured ? along * along : 0));
    const double beta = 1 / std::sqrt(std::abs(more) < w / 2 ? w + more : w);
    step.aux[kBeta][i] = static_cast<T>(beta);
    step.A[i] = static_cast<T>(beta * u);
    step.B[i] = static_cast<T>(beta * g);
  }

  // What the gradients of all slots add up to; hh is that of |h|^2.
  struct Sums {
    Vec<T> mu, gamma, hh;
  };

  HWY_NOINLINE void AdjointSlots(const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    AdjointSlotsAs(x, p.normalize == Normalize::kToken, /*ds=*/nullptr, step, g);
  }

  // From dA, dB to the gradients of the gates, of c (in dk), of <S_i, h> (P) and of s_i (E, which ReadSlots
  // completes); ds is what else depends on s_i, or null.
  HWY_INLINE void AdjointSlotsAs(const Token<T>& x, bool token, const T* ds, const Step<T>& step,
                                 StepGrad<T>& g) {
    const auto zero = hn::Zero(Tag<T>());
    Sums sums = {zero, zero, zero};
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      AdjointOf(i, x, token, ds == nullptr ? zero : Load(ds + i), step, g, sums);
    }
    g.dgates[kMuGate] += Total<T>(sums.mu);
    g.dgates[kGammaGate] += Total<T>(sums.gamma);
    step_dhh_ = Total<T>(sums.hh);
  }

  HWY_INLINE void AdjointOf(size_t i, const Token<T>& x, bool token, Vec<T> ds, const Step<T>& step,
                            StepGrad<T>& g, Sums& sums) const {
    const auto dA = LoadSums(g.dA + i), dB = LoadSums(g.dB + i);
    const auto mu = Set(x.gates[kMuGate]), gamma = Set(x.gates[kGammaGate]), zero = hn::Zero(Tag<T>());
    const auto inv = Load(step.lengths.inv + i), a = Load(step.aux[kA] + i), ch = Load(step.aux[kCh] + i);
    const auto beta = Load(step.aux[kBeta] + i), r = Load(step.aux[kR] + i);
    const auto gc = hn::Mul(gamma, ch), gi = hn::Mul(gc, inv);
    const auto bdA = hn::Mul(beta, dA), along = hn::Mul(bdA, gi);
    auto dgc = hn::MulAdd(bdA, hn::Mul(a, inv), hn::Mul(beta, dB)), da = along, dmu = bdA;
    if (token) {
      // beta = w^(-1/2): with dbeta = dA A/beta + dB B/beta and e = beta^3 dbeta, dw = -e/2
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
    // 1/s stands in A, in ch and in a.
    ds = hn::NegMulAdd(inv, hn::MulAdd(dch, ch, hn::Mul(a, hn::Add(along, da))), ds);
    Store(kEnc ? hn::Neg(dc) : dc, g.dk + i);
    Store(hn::Mul(da, inv), g.P + i);
    Store(kDec ? ds : hn::Mul(inv, ds), g.E + i);
    sums.mu = hn::Add(sums.mu, Valid(i, dmu));
    sums.gamma = hn::Add(sums.gamma, Valid(i, hn::Mul(ch, dgc)));
  }

  // From dh and P@S to v and z.
  void Adjoint(const Token<T>&, const Step<T>& step, StepGrad<T>& g) {
    const auto dhh2 = Set(2 * step_dhh_);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto dh = hn::Add(hn::MulAdd(dhh2, Load(step.h + j), Load(g.dh + j)), Load(g.dz + j));
      Store(dh, g.dz + j);
      Store(kEnc ? dh : hn::Neg(dh), g.dv + j);
    }
  }

  // From z to k and the lengths.
  HWY_INLINE void ReadSlots(size_t i, Vec<T> dots, const Token<T>&, const Step<T>& step, StepGrad<T>& g) {
    const auto inv = Load(step.lengths.inv + i), dk = hn::Mul(dots, inv);
    Store(hn::Add(Load(g.dk + i), dk), g.dk + i);
    Store(hn::Mul(inv, hn::NegMulAdd(dk, Load(step.aux[kCh] + i), Load(g.E + i))), g.E + i);
  }

 private:
  // Lanes beyond the last slot count for nothing.
  HWY_INLINE Vec<T> Valid(size_t i, Vec<T> x) const {
    return i + kLanes<T> > d.slots ? hn::IfThenElseZero(hn::FirstN(Tag<T>(), d.slots - i), x) : x;
  }

  T step_dhh_ = 0;  // the gradient of |h|^2 of the token under way
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_LATTICE_INL_H_
