// One tile of n tokens through the linear recurrence of a chunk (docs/exact-or-chunked.md), forward and
// backward:
//   X_t = G_t (.) X_{t-1} + R_t (.) S' [linear1 only] - W_t h_t^T        y_t = q_t @ X_t
// As products of matrices, with the products of gates A_t = G_1 .. G_t and B_t = G_{t+1} .. G_n, with
// F_t = G_t F_{t-1} + R_t, and with * for products element by element:
//   Y = (Q*A) X_0 + (Q*F) S' - P H        X_n = A_n (.) X_0 + F_n (.) S' - (W*B)^T H
//   P_tj = <u_tj, W_j> for j <= t,  u_tj = q_t G_t .. G_{j+1}
// Products of gates are built up token by token, never by division: a gate may be zero.
#if defined(LATTICE_KERNELS_CHUNK_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CHUNK_TILE_INL_H_
#undef LATTICE_KERNELS_CHUNK_TILE_INL_H_
#else
#define LATTICE_KERNELS_CHUNK_TILE_INL_H_
#endif

#include "kernels/chunk/terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// z = x y over n (padded) elements.
template <typename T>
HWY_INLINE void Multiply(const T* x, const T* y, size_t n, T* z) {
  for (size_t i = 0; i < n; i += kLanes<T>) Store(hn::Mul(Load(x + i), Load(y + i)), z + i);
}

// z += a x over a row.
template <typename T>
HWY_INLINE void AddScaled(T a, const T* x, size_t n, T* z) {
  for (size_t i = 0; i < n; i += kLanes<T>) Store(hn::MulAdd(Set(a), Load(x + i), Load(z + i)), z + i);
}

// The passes over one tile, whose terms are made (terms-inl.h).
template <typename T>
struct TileRunner {
  static constexpr size_t kTile = Scratch<T>::kTile;

  const ChunkRule& rule;
  const Dims<T>& d;
  Scratch<T>& w;

  TermMaker<T> Terms() const { return {rule, d, w.frozen}; }
  // The row of the tile's last token in an array [tokens][rows].
  T* Last(const Tile<T>& t, T* x) const { return x + (t.tokens - 1) * d.rows; }

  // A, B and F of every token (from_start, to_end, through).
  HWY_NOINLINE void MultiplyGates(const Tile<T>& t) const {
    const size_t n = t.tokens;
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      auto A = Set(T(1)), B = A, F = hn::Zero(Tag<T>());
      for (size_t x = 0, at = i; x < n; ++x, at += d.rows) {
        const auto G = Load(t.G + at);
        A = hn::Mul(A, G);
        Store(A, t.from_start + at);
        F = hn::MulAdd(G, F, Load(t.R + at));
        Store(F, t.through + at);
      }
      for (size_t x = n, at = (n - 1) * d.rows + i; x > 0; --x, at -= d.rows) {
        Store(B, t.to_end + at);
        B = hn::Mul(B, Load(t.G + at));
      }
    }
  }

  // P, column by column from the last. For column j, row t of u holds u_tj = q_t G_t .. G_{j+1}. With kKeep
  // the u_tj of all columns are saved, at row j * kTile + t of u.
  template <bool kKeep>
  HWY_NOINLINE void MakeScores(const Tile<T>& t, T* u) const {
    const size_t n = t.tokens, next = kKeep ? kTile * d.rows : 0;
    for (size_t j = n; j-- > 0;) {
      T* now = u + j * next;
      const T* W = t.W + j * d.rows;
      const T* G = t.G + (j + 1) * d.rows;
      for (size_t x = 0; x < j; ++x) t.P[x * kTile + j] = T(0);
      Copy(t.q + j * d.rows, d.rows, now + j * d.rows);
      t.P[j * kTile + j] = Dot(now + j * d.rows, W, d.rows);
      size_t x = j + 1;
      for (; x + kGroup<T> <= n; x += kGroup<T>) ScoreRows<kGroup<T>>(t, j, x, now + next, G, W, now);
      for (; x < n; ++x) ScoreRows<1>(t, j, x, now + next, G, W, now);
    }
  }

  // P_tj and u_tj for kRows tokens t from x on; `before` has the u of column j + 1, and G is G_{j+1}.
  template <size_t kRows>
  HWY_INLINE void ScoreRows(const Tile<T>& t, size_t j, size_t x, const T* before, const T* G, const T* W,
                            T* now) const {
    Vec<T> acc[kGroup<T>];
    for (auto& sum : acc) sum = hn::Zero(Tag<T>());
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      const auto g = Load(G + i), weight = Load(W + i);
      for (size_t r = 0; r < kRows; ++r) {
        const auto u = hn::Mul(g, Load(before + (x + r) * d.rows + i));
        Store(u, now + (x + r) * d.rows + i);
        acc[r] = hn::MulAdd(u, weight, acc[r]);
      }
    }
    HWY_ALIGN T sums[kGroup<T>];
    AccumulateGroupSums<T>(0, acc, sums);
    for (size_t r = 0; r < kRows; ++r) t.P[(x + r) * kTile + j] = sums[r];
  }

  // y [tokens][stride] of a tile that starts from the state X.
  HWY_NOINLINE void ReadOut(const Tile<T>& t, const T* X, T* y) const {
    MakeScores<false>(t, w.products);
    const size_t n = t.tokens;
    const auto read = [&](const T* share, const T* state, bool first) HWY_ATTR {
      Multiply(t.q, share, n * d.rows, w.products);
      Product<false>(n, d.slots, Rows(w.products, d.rows), Right<T>{state, d.stride},
                     first ? Onto<T>{} : Onto<T>{y}, y);
    };
    read(t.from_start, X, true);
    if (rule.linear1) read(t.through, w.frozen.S, false);
    Product<true>(n, n, Rows(t.P, kTile), Right<T>{t.H, d.stride}, Onto<T>{y}, y);
  }

  // X_new, the state after the tile, from X, the state before it; in place if they are the same.
  HWY_NOINLINE void Advance(const Tile<T>& t, const T* X, T* X_new) const {
    Multiply(t.W, t.to_end, t.tokens * d.rows, w.products);
    Product<true>(d.rows, t.tokens, Columns(w.products, d.rows), Right<T>{t.H, d.stride},
                  Onto<T>{X, Last(t, t.from_start)}, X_new);
    if (rule.linear1) AddRows(Last(t, t.through), w.frozen.S, X_new);
  }

  // to_i += x_i from_i
  HWY_INLINE void AddRows(const T* x, const T* from, T* to) const {
    for (size_t i = 0; i < d.rows; ++i) AddScaled(x[i], from + i * d.stride, d.stride, to + i * d.stride);
  }

  // sum_i += <x_i, y_i>
  HWY_INLINE void AddRowDots(const T* x, const T* y, T* sum) const {
    for (size_t i = 0; i < d.rows; ++i) sum[i] += Dot(x + i * d.stride, y + i * d.stride, d.stride);
  }

  // The adjoint of a tile that starts from the state X, given w.grad.dy. dX is the gradient of X_n on entry,
  // of X_0 on return; dS and ds gain the gradients of the frozen state and of its lengths. Leaves dq, dk and
  // dh (that of v, up to its sign) in w.grad.
  HWY_NOINLINE void Backward(const Tile<T>& t, const T* X, T* dX, T* dS, T* ds, T* dgamma, T* dmu) const {
    const TileGrad<T>& g = w.grad;
    const size_t n = t.tokens;
    MakeScores<true>(t, w.queries);
    // The gradients of Q*A, W*B and Q*F into dA, dW and dR.
    Transpose(X, d.rows, d.stride, w.X_transposed);
    Transpose(dX, d.rows, d.stride, w.dX_transposed);
    Product<false>(n, d.width, Rows(g.dy, d.stride), Right<T>{w.X_transposed, d.rows}, Onto<T>{}, g.dA);
    Product<true>(n, d.width, Rows(t.H, d.stride), Right<T>{w.dX_transposed, d.rows}, Onto<T>{}, g.dW);
    if (rule.linear1) {
      Product<false>(n, d.width, Rows(g.dy, d.stride), Right<T>{w.frozen.transposed, d.rows}, Onto<T>{},
                     g.dR);
    }
    // dP_tj = -<dy_t, h_j>, stored without the sign; dH = -P^T dY - (W*B) dX.
    for (size_t x = 0; x < n; ++x) {
      RowDots(t.H, RoundUp(x + 1, kRowBlock<T>), d.stride, g.dy + x * d.stride, g.dP + x * kTile);
    }
    Product<true>(n, n, Columns(t.P, kTile), Right<T>{g.dy, d.stride}, Onto<T>{}, g.dh);
    Multiply(t.W, t.to_end, n * d.rows, w.products);
    Product<true>(n, d.slots, Rows(w.products, d.rows), Right<T>{dX, d.stride}, Onto<T>{g.dh}, g.dh);
    SplitProducts(t);
    // The last token's A and F are also in X_n.
    AddRowDots(dX, X, Last(t, g.dA));
    if (rule.linear1) {
      AddRowDots(dX, w.frozen.S, Last(t, g.dR));
      AddRows(Last(t, t.through), dX, dS);
      Multiply(t.q, t.through, n * d.rows, w.products);
      Product<false>(d.rows, n, Columns(w.products, d.rows), Right<T>{g.dy, d.stride}, Onto<T>{dS}, dS);
    }
    // dX_0 = A_n (.) dX_n + (Q*A)^T dY
    Multiply(t.q, t.from_start, n * d.rows, w.products);
    Product<false>(d.rows, n, Columns(w.products, d.rows), Right<T>{g.dy, d.stride},
                   Onto<T>{dX, Last(t, t.from_start)}, dX);
    GateAdjoint(t);
    Terms().Adjoint(t, g, dgamma, dmu, dS, ds);
  }

 private:
  // The adjoint of the products Q*A, Q*F and W*B: from their gradients (in dA, dR and dW) to those of the
  // factors q, A, F (in dR), W and B.
  HWY_NOINLINE void SplitProducts(const Tile<T>& t) const {
    const TileGrad<T>& g = w.grad;
    for (size_t i = 0; i < t.tokens * d.rows; i += kLanes<T>) {
      const auto q = Load(t.q + i), dQA = Load(g.dA + i), dWB = Load(g.dW + i);
      auto dq = hn::Mul(dQA, Load(t.from_start + i));
      Store(hn::Mul(dQA, q), g.dA + i);
      if (rule.linear1) {
        const auto dQF = Load(g.dR + i);
        dq = hn::MulAdd(dQF, Load(t.through + i), dq);
        Store(hn::Mul(dQF, q), g.dR + i);
      }
      Store(dq, g.dq + i);
      Store(hn::Mul(dWB, Load(t.W + i)), g.dB + i);
      Store(hn::Mul(dWB, Load(t.to_end + i)), g.dW + i);
    }
  }

  // The adjoint of P, A, B and F, for all tokens: completes dq, dG, dW and dR.
  HWY_NOINLINE void GateAdjoint(const Tile<T>& t) const {
    const TileGrad<T>& g = w.grad;
    const size_t n = t.tokens;
    for (size_t i = 0; i < d.rows; i += kLanes<T>) {
      ScoreAdjoint(t, i);
      auto dA = hn::Zero(Tag<T>()), dF = dA;
      for (size_t x = n; x-- > 0;) {
        const size_t at = x * d.rows + i;
        const auto G = Load(t.G + at), A = x == 0 ? Set(T(1)) : Load(t.from_start + at - d.rows);
        dA = hn::Add(dA, Load(g.dA + at));
        auto dG = hn::MulAdd(dA, A, Load(g.dG + at));
        dA = hn::Mul(dA, G);
        if (rule.linear1) {
          dF = hn::Add(dF, Load(g.dR + at));
          Store(dF, g.dR + at);
          if (x > 0) dG = hn::MulAdd(dF, Load(t.through + at - d.rows), dG);
          dF = hn::Mul(dF, G);
        }
        Store(dG, g.dG + at);
      }
      auto dB = Load(g.dB + i);
      for (size_t x = 1; x < n; ++x) {
        const size_t at = x * d.rows + i;
        Store(hn::MulAdd(dB, Load(t.to_end + at), Load(g.dG + at)), g.dG + at);
        dB = hn::MulAdd(dB, Load(t.G + at), Load(g.dB + at));
      }
    }
  }

  // The adjoint of P_tj = <u_tj, W_j>, u_{t,j-1} = u_tj G_j and u_tt = q_t for the slots from i on, one
  // vector. Sets dG, and adds to dW and dq.
  HWY_INLINE void ScoreAdjoint(const Tile<T>& t, size_t i) const {
    const TileGrad<T>& g = w.grad;
    const size_t n = t.tokens;
    for (size_t j = 0; j < n; ++j) {
      const auto W = Load(t.W + j * d.rows + i), G = Load(t.G + j * d.rows + i);
      auto dW = Load(g.dW + j * d.rows + i), dG = hn::Zero(Tag<T>());
      for (size_t x = j; x < n; ++x) {
        T* dU = g.dU + x * d.rows + i;
        const auto u = Load(w.queries + (j * kTile + x) * d.rows + i), dP = Set(-g.dP[x * kTile + j]);
        auto du = j == 0 ? hn::Zero(Tag<T>()) : Load(dU);
        dG = hn::MulAdd(du, u, dG);
        dW = hn::MulAdd(dP, u, dW);
        Store(hn::MulAdd(dP, W, hn::Mul(du, G)), dU);
      }
      Store(dW, g.dW + j * d.rows + i);
      Store(dG, g.dG + j * d.rows + i);
      T* dq = g.dq + j * d.rows + i;
      Store(hn::Add(Load(dq), Load(g.dU + j * d.rows + i)), dq);
    }
  }
};

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_TILE_INL_H_
