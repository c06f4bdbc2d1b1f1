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

#include "kernels/engine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

enum class Objective { kDec, kEnc, kSim };

template <typename T, Objective kObjective>
struct LatticeRule : RuleBase<T> {
  static constexpr bool kMeasures = true;
  static constexpr bool kDec = kObjective == Objective::kDec;
  static constexpr bool kEnc = kObjective == Objective::kEnc;
  static constexpr int kPush = kDots | kScales | (kDec ? kReads : 0);
  static constexpr T kEps2 = T(1e-12);

  using RuleBase<T>::RuleBase;
  using RuleBase<T>::d;
  using RuleBase<T>::p;

  enum Aux { kS, kInv, kA, kCh, kR, kBeta, kTmp };

  // The values of h before the state's part; Dec: z = k@Phi is added.
  HWY_INLINE void MakeTarget(const T* S, const Token<T>& x, Step<T>& step) {
    if constexpr (kDec) {
      for (size_t i = 0; i < d.lanes; i += kLanes<T>) {
        Store(hn::Mul(Load(x.k + i), Load(step.aux[kInv] + i)), step.aux[kTmp] + i);
      }
      ColumnSum(step.aux[kTmp], S, d.rows, d.stride, step.h);
    }
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto v = Load(x.v + j);
      const auto h = kEnc ? v : kDec ? hn::Sub(Load(step.h + j), v) : hn::Neg(v);
      Store(h, step.h + j);
    }
  }

  // r_i without cancellation: |h - a Phi|^2 + (a eps / s)^2. Only for slots whose beta would suffer.
  HWY_NOINLINE void MeasureResiduals(const T* S, T hh, const Token<T>& x, Step<T>& step) {
    for (size_t i = 0; i < d.slots; ++i) {
      if (!Cancels(hh, x, step, i)) continue;
      const T a = step.aux[kA][i], inv = step.aux[kInv][i];
      const auto scale = Set(a * inv);
      auto acc = hn::Zero(Tag<T>());
      for (size_t j = 0; j < d.stride; j += kLanes<T>) {
        const auto u = hn::NegMulAdd(scale, Load(S + i * d.stride + j), Load(step.h + j));
        acc = hn::MulAdd(u, u, acc);
      }
      const T residual = hn::GetLane(hn::SumOfLanes(Tag<T>(), acc));
      step.aux[kR][i] = residual + a * a * inv * inv * kEps2;
    }
  }

  // r_i carries an error of an ulp of |h|^2; it matters where that is large against the length of the new
  // slot.
  static constexpr T kTolerated = 8;
  HWY_INLINE bool Cancels(T hh, const Token<T>& x, const Step<T>& step, size_t i) const {
    const T g = x.gamma * step.aux[kCh][i], ms = x.mu * step.aux[kS][i];
    return g * g * hh > kTolerated * (ms * ms + g * g * step.aux[kR][i]);
  }

  // Norms, dots and residuals: everything that looks at the state.
  HWY_INLINE void Look(const T* S, const T* norms, const Token<T>& x, Step<T>& step) {
    const auto one = Set(T(1));
    for (size_t i = 0; i < d.lanes; i += kLanes<T>) {
      const auto s = hn::Sqrt(hn::Add(LoadRowSums(norms + i), Set(kEps2)));
      Store(s, step.aux[kS] + i);
      Store(hn::Div(one, s), step.aux[kInv] + i);
    }
    MakeTarget(S, x, step);
    const T hh = Dot(step.h, step.h, d.stride);
    RowDots(S, d.rows, d.stride, step.h, step.aux[kA]);
    const auto gamma2 = Set(x.gamma * x.gamma), mu2 = Set(x.mu * x.mu), hhs = Set(hh);
    auto worst = hn::Set(Tag<T>(), T(-1));
    for (size_t i = 0; i < d.lanes; i += kLanes<T>) {
      const auto s = Load(step.aux[kS] + i), inv = Load(step.aux[kInv] + i), k = Load(x.k + i);
      const auto a = hn::Mul(LoadRowSums(step.aux[kA] + i), inv);
      const auto ch = hn::Mul(kEnc ? hn::Sub(a, k) : k, inv);
      const auto r = hn::Max(hn::Zero(Tag<T>()), hn::NegMulAdd(a, a, hhs));
      Store(a, step.aux[kA] + i);
      Store(ch, step.aux[kCh] + i);
      Store(r, step.aux[kR] + i);
      // g^2 hh - 8 (mu^2 s^2 + g^2 r) > 0: see Cancels
      const auto g2 = hn::Mul(gamma2, hn::Mul(ch, ch));
      const auto length2 = hn::MulAdd(g2, r, hn::Mul(mu2, hn::Mul(s, s)));
      worst = hn::Max(worst, hn::NegMulAdd(Set(kTolerated), length2, hn::Mul(g2, hhs)));
    }
    if (!hn::AllFalse(Tag<T>(), hn::Gt(worst, hn::Zero(Tag<T>())))) MeasureResiduals(S, hh, x, step);
  }

  void MakeStep(const T* S, const T* norms, const Token<T>& x, Step<T>& step) {
    Look(S, norms, x, step);
    Coefficients(x, p.normalize == Normalize::kToken, step);
  }

  HWY_INLINE void Coefficients(const Token<T>& x, bool token, Step<T>& step) {
    const auto mu = Set(x.mu), gamma = Set(x.gamma);
    for (size_t i = 0; i < d.lanes; i += kLanes<T>) {
      const auto s = Load(step.aux[kS] + i), inv = Load(step.aux[kInv] + i);
      const auto a = Load(step.aux[kA] + i), g = hn::Mul(gamma, Load(step.aux[kCh] + i));
      auto beta = Set(T(1));
      if (token) {
        const auto ms = hn::Mul(mu, s);
        const auto den2 = hn::MulAdd(hn::Mul(g, g), Load(step.aux[kR] + i), hn::Mul(ms, ms));
        beta = hn::Div(s, hn::Sqrt(den2));
      }
      Store(beta, step.aux[kBeta] + i);
      Store(hn::Mul(beta, hn::MulAdd(g, hn::Mul(a, inv), mu)), step.A + i);
      Store(hn::Mul(beta, g), step.B + i);
    }
  }

  void Adjoint(const T* S, const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    Scalars(x, step, g, p.normalize == Normalize::kToken, /*ds_extra=*/nullptr);
    Finish(S, x, step, g);
  }

  // From dA, dB to the gradients of the gates, of c (in dk), of <S_i, h> (P) and of s_i (E, still undivided).
  HWY_INLINE void Scalars(const Token<T>& x, const Step<T>& step, StepGrad<T>& g, bool token,
                          const T* ds_extra) {
    const auto mu = Set(x.mu), gamma = Set(x.gamma), two = Set(T(2)), zero = hn::Zero(Tag<T>());
    auto dmu = zero, dgamma = zero, dhh = zero;
    for (size_t i = 0; i < d.lanes; i += kLanes<T>) {
      const auto s = Load(step.aux[kS] + i), inv = Load(step.aux[kInv] + i), a = Load(step.aux[kA] + i);
      const auto ch = Load(step.aux[kCh] + i), beta = Load(step.aux[kBeta] + i), r = Load(step.aux[kR] + i);
      const auto dA = LoadRowSums(g.dA + i), dB = LoadRowSums(g.dB + i);
      const auto ai = hn::Mul(a, inv), gch = hn::Mul(gamma, ch);
      const auto bdA = hn::Mul(beta, dA);
      // dF: gradient of gamma ch, which stands in A times a/s and in B.
      const auto dF = hn::MulAdd(bdA, ai, hn::Mul(beta, dB));
      auto dch = hn::Mul(gamma, dF);
      auto da = hn::Mul(bdA, hn::Mul(gch, inv));
      auto dinv = hn::Mul(bdA, hn::Mul(gch, a));
      auto ds = ds_extra == nullptr ? zero : Load(ds_extra + i);
      auto slot_dmu = bdA, slot_dgamma = hn::Mul(ch, dF);
      if (token) {
        const auto ms = hn::Mul(mu, s);
        const auto dbeta = hn::MulAdd(dA, hn::MulAdd(gch, ai, mu), hn::Mul(dB, gch));
        const auto den2 = hn::MulAdd(hn::Mul(gch, gch), r, hn::Mul(ms, ms));
        const auto dd = hn::Mul(Set(T(-0.5)), hn::Div(hn::Mul(dbeta, beta), den2));
        const auto dd2 = hn::Add(dd, dd);
        ds = hn::Add(ds, hn::MulAdd(dbeta, hn::Mul(beta, inv), hn::Mul(dd2, hn::Mul(mu, ms))));
        slot_dmu = hn::MulAdd(dd2, hn::Mul(ms, s), slot_dmu);
        slot_dgamma = hn::MulAdd(dd2, hn::Mul(gamma, hn::Mul(hn::Mul(ch, ch), r)), slot_dgamma);
        dch = hn::MulAdd(dd2, hn::Mul(gamma, hn::Mul(gch, r)), dch);
        const auto dr = hn::IfThenElseZero(hn::Gt(r, zero), hn::Mul(dd, hn::Mul(gch, gch)));
        dhh = hn::Add(dhh, InSlots(i, dr));
        da = hn::NegMulAdd(hn::Mul(two, a), dr, da);
      }
      const auto dc = hn::Mul(dch, inv);
      dinv = hn::MulAdd(dch, hn::Mul(ch, s), dinv);
      if constexpr (kEnc) da = hn::Add(da, dc);
      Store(kEnc ? hn::Neg(dc) : dc, g.dk + i);
      dinv = hn::MulAdd(da, hn::Mul(a, s), dinv);
      Store(hn::Mul(da, inv), g.P + i);
      Store(hn::NegMulAdd(dinv, hn::Mul(inv, inv), ds), g.E + i);
      dmu = hn::Add(dmu, InSlots(i, slot_dmu));
      dgamma = hn::Add(dgamma, InSlots(i, slot_dgamma));
    }
    g.dmu += hn::GetLane(hn::SumOfLanes(Tag<T>(), dmu));
    g.dgamma += hn::GetLane(hn::SumOfLanes(Tag<T>(), dgamma));
    dhh_ = hn::GetLane(hn::SumOfLanes(Tag<T>(), dhh));
  }

  // From dh to v, k and the norms.
  HWY_INLINE void Finish(const T* S, const Token<T>& x, const Step<T>& step, StepGrad<T>& g) {
    d.ZeroTail(g.P);
    ColumnSum(g.P, S, d.rows, d.stride, g.dz);
    const auto dhh2 = Set(2 * dhh_);
    for (size_t j = 0; j < d.stride; j += kLanes<T>) {
      const auto dh = hn::Add(hn::MulAdd(dhh2, Load(step.h + j), Load(g.dh + j)), Load(g.dz + j));
      Store(dh, g.dz + j);
      Store(kEnc ? dh : hn::Neg(dh), g.dv + j);
    }
    if constexpr (kDec) RowDots(S, d.rows, d.stride, g.dz, g.W);  // the gradient of w = k / s, for now
    for (size_t i = 0; i < d.lanes; i += kLanes<T>) {
      const auto inv = Load(step.aux[kInv] + i);
      auto ds = Load(g.E + i);
      if constexpr (kDec) {
        const auto w = hn::Mul(Load(x.k + i), inv), dw = hn::Mul(LoadRowSums(g.W + i), inv);
        Store(hn::Add(Load(g.dk + i), dw), g.dk + i);
        ds = hn::NegMulAdd(dw, w, ds);
        Store(w, g.W + i);
      }
      Store(hn::Mul(ds, inv), g.E + i);
    }
  }

 protected:
  // Lanes beyond the last slot count for nothing in sums over slots.
  HWY_INLINE Vec<T> InSlots(size_t i, Vec<T> x) const {
    return i + kLanes<T> <= d.slots ? x : hn::IfThenElseZero(hn::FirstN(Tag<T>(), d.slots - i), x);
  }

  T dhh_ = 0;  // gradient of |h|^2
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_RULES_LATTICE_INL_H_
