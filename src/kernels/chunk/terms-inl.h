// The terms of a tile's tokens in the linear recurrence of a chunk, and their adjoint
// (docs/exact-or-chunked.md).
//
//   h (the rows of H), a, ch, r, beta as in rules/lattice-inl.h, with the frozen state S' in the place of S
//   W = gamma beta ch     R = W a / s     G = mu beta (linear1)  or  mu beta + R (linear2)
#if defined(LATTICE_KERNELS_CHUNK_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CHUNK_TERMS_INL_H_
#undef LATTICE_KERNELS_CHUNK_TERMS_INL_H_
#else
#define LATTICE_KERNELS_CHUNK_TERMS_INL_H_
#endif

#include "kernels/chunk/scratch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
struct TermMaker {
  const ChunkRule& rule;
  const Dims<T>& d;
  const Frozen<T>& f;

  bool Dec() const { return rule.objective == Objective::kDec; }
  bool Enc() const { return rule.objective == Objective::kEnc; }
  bool Token() const { return rule.normalize == Normalize::kToken; }

  // h of every token into t.H, which holds v.
  HWY_INLINE void MakeTargets(const Tile<T>& t) const {
    const size_t n = t.tokens;
    if (Dec()) {
      for (size_t x = 0; x < n; ++x) {
        for (size_t i = x * d.rows; i < (x + 1) * d.rows; i += kLanes<T>) {
          Store(hn::Mul(Load(t.k + i), Load(f.inv + i - x * d.rows)), t.reads + i);
        }
      }
      // reads S' is k@Phi, so this leaves v - k@Phi in H; the loop below negates it.
      Product<true>(n, d.slots, Rows(t.reads, d.rows), Right<T>{f.S, d.stride}, Onto<T>{t.H}, t.H);
    }
    if (Enc()) return;
    for (size_t i = 0; i < n * d.stride; i += kLanes<T>) Store(hn::Neg(Load(t.H + i)), t.H + i);
  }

  // All terms of a tile, from q, k, v and the gates.
  HWY_NOINLINE void MakeTerms(const Tile<T>& t) const {
    MakeTargets(t);
    // t.a holds the dots <S'_i, h_t> until MakeSlots divides them by s.
    Product<false>(t.tokens, d.width, Rows(t.H, d.stride), Right<T>{f.transposed, d.rows}, Onto<T>{}, t.a);
    for (size_t x = 0; x < t.tokens; ++x) {
      const T hh = Dot(t.H + x * d.stride, t.H + x * d.stride, d.stride);
      for (size_t i = 0; i < d.rows; i += kLanes<T>) MakeSlots(t, x, i, hh);
    }
  }

  // The terms of token x for the slots from i on, one vector; hh is |h|^2.
  HWY_INLINE void MakeSlots(const Tile<T>& t, size_t x, size_t i, T hh) const {
    const size_t at = x * d.rows + i;
    const auto gamma = Set(t.gamma[x]), mu = Set(t.mu[x]), one = Set(T(1));
    const auto s = Load(f.s + i), inv = Load(f.inv + i), k = Load(t.k + at);
    const auto a = hn::Mul(Load(t.a + at), inv);
    const auto ch = hn::Mul(Enc() ? hn::Sub(a, k) : k, inv);
    const auto g = hn::Mul(gamma, ch), g2 = hn::Mul(g, g), ms = hn::Mul(mu, s), ms2 = hn::Mul(ms, ms);
    auto r = hn::Max(hn::Zero(Tag<T>()), hn::NegMulAdd(a, a, Set(hh)));
    Store(a, t.a + at);
    auto beta = one;
    if (Token()) {
      // r = |h|^2 - a^2 has an error of an ulp of |h|^2. Where that matters, it is computed without the
      // cancellation.
      const auto excess = hn::NegMulAdd(Set(T(8)), hn::MulAdd(g2, r, ms2), hn::Mul(g2, Set(hh)));
      if (HWY_UNLIKELY(!hn::AllFalse(Tag<T>(), hn::Gt(excess, hn::Zero(Tag<T>()))))) {
        for (size_t lane = 0; lane < kLanes<T>; ++lane) {
          const T* S = f.S + (i + lane) * d.stride;
          t.r[at + lane] = Residual(S, t.H + x * d.stride, d.stride, t.a[at + lane], f.inv[i + lane]);
        }
        r = Load(t.r + at);
      }
      beta = hn::Div(s, hn::Sqrt(hn::MulAdd(g2, r, ms2)));
    }
    const auto W = hn::Mul(beta, g), R = hn::Mul(W, hn::Mul(a, inv)), decay = hn::Mul(mu, beta);
    Put(i, ch, t.ch + at);
    Put(i, r, t.r + at);
    Put(i, beta, t.beta + at);
    Put(i, W, t.W + at);
    Put(i, R, t.R + at);
    Put(i, rule.linear1 ? decay : hn::Add(decay, R), t.G + at);
  }

  // From the gradients of G, W, R and H (in dh) to those of k, of v (in dh, up to its sign), of the gates, of
  // S' (added to dS) and of its lengths (added to ds).
  HWY_NOINLINE void Adjoint(const Tile<T>& t, const TileGrad<T>& g, T* dgamma, T* dmu, T* dS, T* ds) const {
    const size_t n = t.tokens;
    for (size_t x = 0; x < n; ++x) {
      auto sum_mu = hn::Zero(Tag<T>()), sum_gamma = sum_mu, sum_hh = sum_mu;
      for (size_t i = 0; i < d.rows; i += kLanes<T>) AdjointSlots(t, g, x, i, ds, sum_mu, sum_gamma, sum_hh);
      dmu[x] = Total<T>(sum_mu);
      dgamma[x] = Total<T>(sum_gamma);
      const auto twice = Set(2 * Total<T>(sum_hh));
      for (size_t j = x * d.stride; j < (x + 1) * d.stride; j += kLanes<T>) {
        Store(hn::MulAdd(twice, Load(t.H + j), Load(g.dh + j)), g.dh + j);
      }
    }
    Product<false>(n, d.slots, Rows(g.ddots, d.rows), Right<T>{f.S, d.stride}, Onto<T>{g.dh}, g.dh);
    Product<false>(d.rows, n, Columns(g.ddots, d.rows), Right<T>{t.H, d.stride}, Onto<T>{dS}, dS);
    if (!Dec()) return;
    // z = reads S' with reads = k / s: ddots is reused for the gradient of the reads.
    Product<false>(n, d.width, Rows(g.dh, d.stride), Right<T>{f.transposed, d.rows}, Onto<T>{}, g.ddots);
    Product<false>(d.rows, n, Columns(t.reads, d.rows), Right<T>{g.dh, d.stride}, Onto<T>{dS}, dS);
    for (size_t x = 0; x < n; ++x) {
      for (size_t i = 0; i < d.rows; i += kLanes<T>) {
        const size_t at = x * d.rows + i;
        const auto dk = hn::Mul(Load(g.ddots + at), Load(f.inv + i));
        Store(hn::Add(Load(g.dk + at), dk), g.dk + at);
        Store(hn::NegMulAdd(dk, Load(t.reads + at), Load(ds + i)), ds + i);
      }
    }
  }

  // The adjoint of MakeSlots. The gradients of mu, gamma and |h|^2 are summed over the slots.
  HWY_INLINE void AdjointSlots(const Tile<T>& t, const TileGrad<T>& g, size_t x, size_t i, T* ds_sum,
                               Vec<T>& sum_mu, Vec<T>& sum_gamma, Vec<T>& sum_hh) const {
    const size_t at = x * d.rows + i;
    const auto mu = Set(t.mu[x]), gamma = Set(t.gamma[x]);
    const auto s = Load(f.s + i), inv = Load(f.inv + i), a = Load(t.a + at), ch = Load(t.ch + at);
    const auto r = Load(t.r + at), beta = Load(t.beta + at), W = Load(t.W + at);
    const auto dG = Load(g.dG + at), dR = rule.linear1 ? Load(g.dR + at) : dG;
    const auto dW = hn::MulAdd(dR, hn::Mul(a, inv), Load(g.dW + at));
    const auto gch = hn::Mul(gamma, ch), dRW = hn::Mul(dR, W);
    auto da = hn::Mul(dRW, inv), dinv = hn::Mul(dRW, a), ds = hn::Zero(Tag<T>());
    auto dmu = hn::Mul(dG, beta), dgamma = hn::Mul(dW, hn::Mul(beta, ch)),
         dch = hn::Mul(dW, hn::Mul(gamma, beta));
    if (Token()) {
      // beta = s den2^(-1/2) with den2 = (mu s)^2 + (gamma ch)^2 r and r = |h|^2 - a^2.
      const auto ms = hn::Mul(mu, s);
      const auto dbeta = hn::MulAdd(dG, mu, hn::Mul(dW, gch));
      const auto den2 = hn::MulAdd(hn::Mul(gch, gch), r, hn::Mul(ms, ms));
      const auto dden2 = hn::Mul(Set(T(-0.5)), hn::Div(hn::Mul(dbeta, beta), den2));
      const auto twice = hn::Add(dden2, dden2);
      ds = hn::MulAdd(dbeta, hn::Mul(beta, inv), hn::Mul(twice, hn::Mul(mu, ms)));
      dmu = hn::MulAdd(twice, hn::Mul(ms, s), dmu);
      dgamma = hn::MulAdd(twice, hn::Mul(gch, hn::Mul(ch, r)), dgamma);
      dch = hn::MulAdd(twice, hn::Mul(gamma, hn::Mul(gch, r)), dch);
      const auto dr = hn::IfThenElseZero(hn::Gt(r, hn::Zero(Tag<T>())), hn::Mul(dden2, hn::Mul(gch, gch)));
      sum_hh = hn::Add(sum_hh, Used(i, dr));
      da = hn::NegMulAdd(hn::Add(a, a), dr, da);
    }
    // 1/s is in R, in ch = c/s and in a = <S'_i, h>/s.
    const auto dc = hn::Mul(dch, inv);
    dinv = hn::MulAdd(dch, hn::Mul(ch, s), dinv);
    if (Enc()) da = hn::Add(da, dc);
    dinv = hn::MulAdd(da, hn::Mul(a, s), dinv);
    Store(Enc() ? hn::Neg(dc) : dc, g.dk + at);
    Put(i, hn::Mul(da, inv), g.ddots + at);
    Put(i, hn::Add(Load(ds_sum + i), hn::NegMulAdd(dinv, hn::Mul(inv, inv), ds)), ds_sum + i);
    sum_mu = hn::Add(sum_mu, Used(i, dmu));
    sum_gamma = hn::Add(sum_gamma, Used(i, dgamma));
  }

  // x with zeros in the lanes beyond the last slot; Put stores that.
  HWY_INLINE Vec<T> Used(size_t i, Vec<T> x) const {
    return i + kLanes<T> > d.slots ? hn::IfThenElseZero(hn::FirstN(Tag<T>(), d.slots - i), x) : x;
  }
  HWY_INLINE void Put(size_t i, Vec<T> x, T* to) const { Store(Used(i, x), to); }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_TERMS_INL_H_
