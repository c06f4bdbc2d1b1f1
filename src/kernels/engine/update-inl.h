// The passes over the state that every rule shares: the update with the read-out, and its adjoint in two
// parts.
//   Update              S_new = diag(A) S - B h^T,   y = q @ S_new
//   CoefficientGrads    dA, dB and dh from G, the gradient of S_new
//   PropagateStateGrad  G becomes the gradient of S
#if defined(LATTICE_KERNELS_ENGINE_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
#undef LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
#endif

#include "kernels/engine/prefetch_queue.h"
#include "kernels/engine/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// What Update computes in the same pass: y = q @ S_new, norms_i = |S_new,i|^2, dq_i = <S_new,i, dy>.
enum UpdateParts { kRead = 1, kMeasure = 2, kQueryGrad = 4 };

template <typename T>
struct UpdateExtras {
  const T* q;
  T *y, *norms;
  const T* dy;
  T* dq;
};

template <int kParts>
struct UpdateOf {
  template <int NV, typename T>
  struct Pass {
    static HWY_INLINE void Run(size_t col, size_t stride, const T* S, size_t rows, const T* A, const T* B,
                               const T* h, T* S_new, const UpdateExtras<T>& x) {
      constexpr size_t N = kLanes<T>, R = kGroup<T>;
      Vec<T> hs[NV], ys[NV], dys[NV];
      for (int j = 0; j < NV; ++j) {
        hs[j] = Load(h + col + j * N);
        ys[j] = hn::Zero(Tag<T>());
        if constexpr (kParts & kQueryGrad) dys[j] = Load(x.dy + col + j * N);
      }
      const T* q = x.q;
      T *norms = x.norms, *dq = x.dq;
      const auto group = [&](size_t first) LATTICE_INLINE {
        Vec<T> squares[R], dots[R];
        LATTICE_UNROLL for (size_t r = 0; r < R; ++r) {
          const size_t at = (first + r) * stride + col;
          const auto a = Set(A[first + r]), b = Set(B[first + r]);
          const auto qi = (kParts & kRead) ? Set(q[first + r]) : a;
          for (int j = 0; j < NV; ++j) {
            const auto s = hn::NegMulAdd(b, hs[j], hn::Mul(a, Load(S + at + j * N)));
            Store(s, S_new + at + j * N);
            if constexpr (kParts & kRead) ys[j] = hn::MulAdd(qi, s, ys[j]);
            if constexpr (kParts & kMeasure) AddProduct(j == 0, s, s, squares[r]);
            if constexpr (kParts & kQueryGrad) AddProduct(j == 0, s, dys[j], dots[r]);
          }
        }
        if constexpr (kParts & kQueryGrad) AccumulateGroupSums<T>(col, dots, dq + first);
        if constexpr (kParts & kMeasure) return SumRows<T>(squares);
      };
      if constexpr (kParts & kMeasure) {
        for (size_t i = 0; i < rows; i += N) AccumulateSums(col, i, GatherSums<T>(i, group), norms);
      } else {
        for (size_t first = 0; first < rows; first += R) group(first);
      }
      if constexpr (kParts & kRead) {
        for (int j = 0; j < NV; ++j) Store(ys[j], x.y + col + j * N);
      }
    }
  };
};

// S_new = diag(A) S - B h^T, and what kParts (UpdateParts) says. S_new may be S.
template <int kParts, typename T>
HWY_INLINE void Update(const T* S, size_t rows, size_t stride, const T* A, const T* B, const T* h, T* S_new,
                       const UpdateExtras<T>& extras) {
  OverTiles<UpdateOf<kParts>::template Pass, kTile, T>(stride, S, rows, A, B, h, S_new, extras);
}

// The adjoint of Update with respect to its coefficients, from G, the gradient of S_new:
//   dA_i = <G_i, S_i>,  dB_i = -<G_i, h>,  dh = -sum_i B_i G_i
//
// S and G together fill a 32 KiB L1 cache for a 64 x 64 head in float32: a pass that touched a third matrix
// took twice the time, which is why dq_i = <S_new,i, dy> is computed where S_new is made.
template <typename T>
HWY_NOINLINE void CoefficientGrads(const T* S, size_t rows, size_t stride, const T* B, const T* h, const T* G,
                                   T* dA, T* dB, T* dh) {
  constexpr size_t N = kLanes<T>, R = kGroup<T>;
  Fill(T(0), stride, dh);
  for (size_t first = 0; first < rows; first += R) {
    Vec<T> acc_A[R], acc_B[R], b[R];
    LATTICE_UNROLL for (size_t r = 0; r < R; ++r) {
      acc_A[r] = acc_B[r] = hn::Zero(Tag<T>());
      b[r] = Set(B[first + r]);
    }
    for (size_t j = 0; j < stride; j += N) {
      const auto hj = Load(h + j);
      auto dhj = Load(dh + j);
      LATTICE_UNROLL for (size_t r = 0; r < R; ++r) {
        const size_t at = (first + r) * stride + j;
        const auto g = Load(G + at);
        acc_A[r] = hn::MulAdd(g, Load(S + at), acc_A[r]);
        acc_B[r] = hn::NegMulAdd(g, hj, acc_B[r]);
        dhj = hn::NegMulAdd(b[r], g, dhj);
      }
      Store(dhj, dh + j);
    }
    AccumulateGroupSums<T>(0, acc_A, dA + first);
    AccumulateGroupSums<T>(0, acc_B, dB + first);
  }
}

// How A, B and h of a rule depend on the old state, and so which terms its gradient has besides diag(A) G:
//   kDots    by the dots <S_i, h>, whose gradient is P            + P h^T
//   kReads   by z = w @ S, whose gradient is dz                   + w dz^T
//   kScales  by the lengths |S_i|; E_i S_i is their gradient      + diag(E) S
// kQuery is for the engine alone: see PropagateStateGrad.
enum StateUse { kDots = 1, kReads = 2, kScales = 4, kQuery = 8 };

// The operands of PropagateStateGrad. A, P, W (the weights w), E and q are vectors over the slots; h, dz and
// dy over the columns. `prefetch` is worked off during the pass.
template <typename T>
struct StateGradTerms {
  const T *A, *P, *h, *W, *dz, *E, *q, *dy;
  PrefetchQueue* prefetch;
};

template <int kParts>
struct StateGradOf {
  template <int NV, typename T>
  struct Pass {
    static HWY_INLINE void Run(size_t col, size_t stride, const T* S, size_t rows, const StateGradTerms<T>& x,
                               T* G) {
      constexpr size_t N = kLanes<T>;
      Vec<T> hs[NV], dzs[NV], dys[NV];
      for (int j = 0; j < NV; ++j) {
        if constexpr (kParts & kDots) hs[j] = Load(x.h + col + j * N);
        if constexpr (kParts & kReads) dzs[j] = Load(x.dz + col + j * N);
        if constexpr (kParts & kQuery) dys[j] = Load(x.dy + col + j * N);
      }
      const T *A = x.A, *P = x.P, *W = x.W, *E = x.E, *Q = x.q;
      PrefetchQueue prefetch = *x.prefetch;
      for (size_t i = 0; i < rows; ++i) {
        if (col == 0) prefetch.Step();
        const size_t at = i * stride + col;
        const auto a = Set(A[i]);
        const auto p = (kParts & kDots) ? Set(P[i]) : a;
        const auto w = (kParts & kReads) ? Set(W[i]) : a;
        const auto e = (kParts & kScales) ? Set(E[i]) : a;
        const auto q = (kParts & kQuery) ? Set(Q[i]) : a;
        for (int j = 0; j < NV; ++j) {
          auto g = hn::Mul(a, Load(G + at + j * N));
          if constexpr (kParts & kDots) g = hn::MulAdd(p, hs[j], g);
          if constexpr (kParts & kReads) g = hn::MulAdd(w, dzs[j], g);
          if constexpr (kParts & kScales) g = hn::MulAdd(e, Load(S + at + j * N), g);
          if constexpr (kParts & kQuery) g = hn::MulAdd(q, dys[j], g);
          Store(g, G + at + j * N);
        }
      }
    }
  };
};

// The adjoint of Update with respect to the state: G, the gradient of S_new, becomes that of S,
//   G = diag(A) G + P h^T [kDots] + W dz^T [kReads] + diag(E) S [kScales]
// With kQuery the same pass adds q dy^T of the token before, whose read-out y = q @ S also depends on S.
template <int kParts, typename T>
HWY_NOINLINE void PropagateStateGrad(const T* S, size_t rows, size_t stride, const StateGradTerms<T>& x,
                                     T* G) {
  x.prefetch->Spread(rows);
  OverTiles<StateGradOf<kParts>::template Pass, kTile, T>(stride, S, rows, x, G);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
