// The engine's scratch buffer of one thread: a token's padded inputs, the step of every token of a block, the
// states of that block, and gradients. Its size depends on the problem's sizes only.
#if defined(LATTICE_KERNELS_ENGINE_WORKSPACE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_WORKSPACE_INL_H_
#undef LATTICE_KERNELS_ENGINE_WORKSPACE_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_WORKSPACE_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/engine/arena.h"
#include "kernels/engine/vec-inl.h"
#include "kernels/problem.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

HWY_INLINE size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Sizes of one head's state: logical (slots, width) and padded to whole vectors (rows, stride).
template <typename T>
struct Dims {
  size_t slots, width, rows, stride;

  Dims(size_t M, size_t D)
      : slots(M), width(D), rows(RoundUp(M, kRowBlock<T>)), stride(RoundUp(D, kLanes<T>)) {}

  size_t Matrix() const { return rows * stride; }

  // Zeroes the padding of a vector over slots, where a computation may have left something else there.
  HWY_INLINE void ZeroTail(T* x) const {
    for (size_t i = slots; i < rows; ++i) x[i] = T(0);
  }
};

// Lengths of the slots, s_i = sqrt(|S_i|^2 + eps^2) (docs/recurrence.md).
template <typename T>
struct Lengths {
  static constexpr T kEps2 = T(1e-12);
  T* norms;      // |S_i|^2, measured by the pass that made the state
  T* inv;        // 1 / s_i
  T* inv_error;  // rounding error of inv: (|S_i|^2 + eps^2) inv_i^2 - 1

  // s_i from |S_i|^2.
  static HWY_INLINE Vec<T> Of(Vec<T> squares) { return hn::Sqrt(hn::Add(squares, Set(kEps2))); }

  // Sets inv and inv_error of the slots from i on, one vector; returns inv.
  HWY_INLINE Vec<T> Invert(size_t i) const {
    const auto n = hn::Add(Load(norms + i), Set(kEps2)), inverse = hn::Div(Set(T(1)), hn::Sqrt(n));
    Store(inverse, inv + i);
#if HWY_NATIVE_FMA
    const auto square = hn::Mul(inverse, inverse), lost = hn::MulSub(inverse, inverse, square);
    Store(hn::MulAdd(n, lost, hn::MulSub(n, square, Set(T(1)))), inv_error + i);
#else
    for (size_t row = i; row < i + kLanes<T>; ++row) {
      const double exact = inv[row];
      inv_error[row] = static_cast<T>((norms[row] + kEps2) * exact * exact - 1);
    }
#endif
    return inverse;
  }
};

// r = |h|^2 - a^2 of one slot, with a = <Phi_i, h>, computed without cancellation:
//   r = |h - a Phi_i|^2 + (a eps / s_i)^2
template <typename T>
HWY_NOINLINE T Residual(const T* slot, const T* h, size_t stride, T a, T inv) {
  auto sum = hn::Zero(Tag<T>());
  for (size_t j = 0; j < stride; j += kLanes<T>) {
    const auto u = hn::NegMulAdd(Set(a * inv), Load(slot + j), Load(h + j));
    sum = hn::MulAdd(u, u, sum);
  }
  return Total<T>(sum) + a * a * inv * inv * Lengths<T>::kEps2;
}

// One token's inputs: the caller's memory where it can be read in whole vectors, otherwise a padded copy.
// Gates that are left out are 1.
template <typename T>
struct Token {
  const T *q, *k, *v;
  const T* slot_gate;  // the gate with one value per slot
  T gates[kMaxGates] = {1, 1, 1, 1};
};

// One token's step: what the engine reads from the state, the coefficients A, B and h that the rule makes of
// it (S_new = diag(A) S - B h^T), and what the rule saves for its adjoint (aux, scalar).
template <typename T>
struct Step {
  static constexpr int kAux = 8, kScalars = 8;
  Lengths<T> lengths;  // of the old state's slots [kMeasures]
  T* z;                // w @ S [kReads]
  T* dots;             // <S_i, h> [kDots]
  T *A, *B, *h;
  T* aux[kAux];  // vectors over slots, or over the width where that is longer
  T scalar[kScalars];
};

// Gradients of one token's step. The engine sets dA, dB and dh; the rule sets the others.
template <typename T>
struct StepGrad {
  T *dA, *dB, *dh;               // of the coefficients; a rule may overwrite dh
  T *dq, *dk, *dv, *dslot_gate;  // of the inputs
  T *P, *dz, *E;                 // terms of the old state's gradient, see StateUse
  T dgates[kMaxGates];
};

template <typename T>
class Workspace {
 public:
  // With room for the steps and states of `depth` tokens, and a matrix for each of `cells` cells.
  Workspace(const Dims<T>& dims, size_t depth, size_t cells) : dims_(dims) {
    const std::span<T> all = PlaceInArena<T>([&](Layout<T>& layout) { Place(depth, cells, layout); });
    // The vectors, which are placed before the matrices, must be padded with zeros.
    std::memset(static_cast<void*>(all.data()), 0, static_cast<size_t>(states_ - all.data()) * sizeof(T));
    Fill(T(1), dims.rows, ones);
  }

  // The state before token i of the current block.
  T* State(size_t i) const { return states_ + i * dims_.Matrix(); }
  // What is carried from block to block for cell i of the group: its state in the forward pass, the gradient
  // of its state in the backward pass.
  T* CellMatrix(size_t i) const { return cells_ + i * dims_.Matrix(); }

  // Two tokens, because the backward pass needs the token before while it finishes the gradient of a token.
  Token<T> tokens[2];
  struct {
    T *q, *k, *v, *slot_gate;
  } copies[2];
  T *y, *dy;
  T* ones;
  Step<T> steps[kBlock + 1];
  StepGrad<T> grad = {};

 private:
  void Place(size_t depth, size_t cells, Layout<T>& layout) {
    const auto vector = [&] { return layout.Take(HWY_MAX(dims_.rows, dims_.stride)); };
    for (auto& copy : copies) copy = {vector(), vector(), vector(), vector()};
    y = vector();
    dy = vector();
    ones = vector();
    for (size_t i = 0; i <= depth; ++i) {
      Step<T>& step = steps[i];
      step.lengths = {vector(), vector(), vector()};
      for (T** part : {&step.z, &step.dots, &step.A, &step.B, &step.h}) *part = vector();
      for (T*& aux : step.aux) aux = vector();
    }
    for (T** part : {&grad.dA, &grad.dB, &grad.dh, &grad.dq, &grad.dk, &grad.dv, &grad.dslot_gate, &grad.P,
                     &grad.dz, &grad.E}) {
      *part = vector();
    }
    states_ = layout.Take((depth + 1) * dims_.Matrix());
    cells_ = layout.Take(cells * dims_.Matrix());
  }

  const Dims<T> dims_;
  T *states_, *cells_;
};

// Copies n elements into padded scratch, or out of it.
template <typename T>
HWY_INLINE void Copy(const T* from, size_t n, T* to) {
  size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) hn::StoreU(hn::LoadU(Tag<T>(), from + i), Tag<T>(), to + i);
  for (; i < n; ++i) to[i] = from[i];
}

// The same by streaming stores, for data that is not read for a long time: they bypass the caches and do not
// fetch the lines they overwrite.
template <typename T>
HWY_INLINE void StreamCopy(const T* from, size_t n, T* to) {
  const bool whole = n % kLanes<T> == 0 && reinterpret_cast<uintptr_t>(to) % (kLanes<T> * sizeof(T)) == 0;
  if (HWY_UNLIKELY(!whole)) return Copy(from, n, to);
  for (size_t i = 0; i < n; i += kLanes<T>) hn::Stream(Load(from + i), Tag<T>(), to + i);
}

// Whether n elements need no padding: they are whole vectors, and as slots whole blocks of rows.
template <typename T>
HWY_INLINE bool IsWhole(size_t n) {
  return n % kRowBlock<T> == 0;
}

// The n elements at p, padded: p itself where it needs no padding, otherwise a copy of it in `copy`.
template <typename T>
HWY_INLINE const T* Padded(const T* p, size_t n, T* copy) {
  if (HWY_LIKELY(IsWhole<T>(n))) return p;
  Copy(p, n, copy);
  return copy;
}

// Copies the caller's [slots, from_stride] matrix into padded scratch and zeroes the padding.
template <typename T>
HWY_INLINE void LoadMatrix(const Dims<T>& d, const T* from, size_t from_stride, T* S) {
  for (size_t i = 0; i < d.rows; ++i, S += d.stride) {
    const size_t used = i < d.slots ? from_stride : 0;
    if (used != 0) Copy(from + i * from_stride, used, S);
    for (size_t j = used; j < d.stride; ++j) S[j] = T(0);
  }
}

template <typename T>
HWY_INLINE void StoreMatrix(const Dims<T>& d, const T* S, size_t to_stride, T* to) {
  for (size_t i = 0; i < d.slots; ++i) Copy(S + i * d.stride, to_stride, to + i * to_stride);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_ENGINE_WORKSPACE_INL_H_
