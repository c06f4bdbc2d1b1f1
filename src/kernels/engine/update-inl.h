// The two passes every rule shares: the update of the state with the read-out, and its adjoint.
//   S' = diag(A) S - B h^T,   y = q @ S'
#if defined(LATTICE_KERNELS_ENGINE_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
#undef LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
#endif

#include "kernels/engine/lines_ahead.h"
#include "kernels/engine/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// What Update does besides updating: y = q @ S_new, norms_i = |S_new,i|^2, dq_i = <S_new,i, dy>.
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
        if constexpr (kParts & kQueryGrad) PutSums<T>(col, dots, dq + first);
        if constexpr (kParts & kMeasure) return SumRows<T>(squares);
      };
      if constexpr (kParts & kMeasure) {
        for (size_t i = 0; i < rows; i += N) KeepSums(col, i, GatherSums<T>(i, group), norms);
      } else {
        for (size_t first = 0; first < rows; first += R) group(first);
      }
      if constexpr (kParts & kRead) {
        for (int j = 0; j < NV; ++j) Store(ys[j], x.y + col + j * N);
      }
    }
  };
};

// S_new = diag(A) S - B h^T, and kParts. S_new may be S.
template <int kParts, typename T>
HWY_INLINE void Update(const T* S, size_t rows, size_t stride, const T* A, const T* B, const T* h, T* S_new,
                       const UpdateExtras<T>& extras) {
  OverTiles<UpdateOf<kParts>::template Pass, kTile, T>(stride, S, rows, A, B, h, S_new, extras);
}

// The adjoint of Update up to the state itself, from G, the gradient of S_new:
//   dA_i = <G_i, S_i>,  dB_i = -<G_i, h>,  dh = -sum_i B_i G_i
//
// S and G together fill a 32 KiB L1 for a 64 x 64 head in float32: a pass that touched a third matrix took
// twice the time, which is why dq_i = <S_new,i, dy> is computed where S_new is made.
template <typename T>
HWY_NOINLINE void Pull(const T* S, size_t rows, size_t stride, const T* B, const T* h, const T* G, T* dA,
                       T* dB, T* dh) {
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
    PutSums<T>(0, acc_A, dA + first);
    PutSums<T>(0, acc_B, dB + first);
  }
}

// Which terms the gradient of the old state has besides diag(A) G; kQuery: see Push.
enum PushParts { kDots = 1, kReads = 2, kScales = 4, kQuery = 8 };

// The operands of Push: numbers a slot A, P, W, E, q; numbers a column h, dz, dy.
template <typename T>
struct PushTerms {
  const T *A, *P, *h, *W, *dz, *E, *q, *dy;
  LinesAhead* lines;
};

template <int kParts>
struct PushOf {
  template <int NV, typename T>
  struct Pass {
    static HWY_INLINE void Run(size_t col, size_t stride, const T* S, size_t rows, const PushTerms<T>& x,
                               T* G) {
      constexpr size_t N = kLanes<T>;
      Vec<T> hs[NV], dzs[NV], dys[NV];
      for (int j = 0; j < NV; ++j) {
        if constexpr (kParts & kDots) hs[j] = Load(x.h + col + j * N);
        if constexpr (kParts & kReads) dzs[j] = Load(x.dz + col + j * N);
        if constexpr (kParts & kQuery) dys[j] = Load(x.dy + col + j * N);
      }
      const T *A = x.A, *P = x.P, *W = x.W, *E = x.E, *Q = x.q;
      LinesAhead lines = *x.lines;
      for (size_t i = 0; i < rows; ++i) {
        if (col == 0) lines.Step();
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

// The gradient of the old state: G = diag(A) G + P h^T [kDots] + W dz^T [kReads] + diag(E) S [kScales]. With
// kQuery the token before, whose result S is, gets its own: G gains q dy^T.
template <int kParts, typename T>
HWY_NOINLINE void Push(const T* S, size_t rows, size_t stride, const PushTerms<T>& x, T* G) {
  x.lines->Spread(rows);
  OverTiles<PushOf<kParts>::template Pass, kTile, T>(stride, S, rows, x, G);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_ENGINE_UPDATE_INL_H_
