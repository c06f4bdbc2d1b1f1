// Passes over a state held in cache: the vocabulary in which every recurrent rule is written.
//
// A state is R rows of `stride` elements, both padded: the stride to whole vectors, the rows to whole groups
// (kGroup), the padding zero. Vectors over slots or over the width are padded alike.
// Every pass adds in an order that depends on the sizes only, never on where a sequence was split.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_VEC_INL_H_
#undef LATTICE_KERNELS_VEC_INL_H_
#else
#define LATTICE_KERNELS_VEC_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Vec = hn::Vec<Tag<T>>;

template <typename T>
inline constexpr size_t kLanes = HWY_LANES(T);
// Rows whose dot products are reduced together: as many as fit into 128 bits, and always an even number.
template <typename T>
inline constexpr size_t kGroup = 16 / sizeof(T);
// Vectors of a row held in registers at a time. 32 registers hold 4 of each operand of every pass below.
inline constexpr int kTile = 4;

template <typename T>
HWY_INLINE Vec<T> Load(const T* p) {
  return hn::Load(Tag<T>(), p);
}
template <typename T>
HWY_INLINE void Store(Vec<T> v, T* p) {
  hn::Store(v, Tag<T>(), p);
}
template <typename T>
HWY_INLINE Vec<T> Set(T x) {
  return hn::Set(Tag<T>(), x);
}

#if HWY_TARGET == HWY_SCALAR

template <typename T>
HWY_INLINE void PutRowSums(const Vec<T>* acc, bool first, T* out) {
  for (size_t r = 0; r < kGroup<T>; ++r) out[r] = hn::GetLane(acc[r]) + (first ? T(0) : out[r]);
}

template <typename T>
HWY_INLINE Vec<T> LoadRowSums(const T* p) {
  return Load(p);
}

#else

// Adds the 128-bit blocks of a vector.
template <class D, class V>
HWY_INLINE auto SumBlocks(D d, V v) {
  if constexpr (D::kPrivateN * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return SumBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

// The sums of the lanes of kGroup vectors, as one 128-bit vector.
template <typename T>
HWY_INLINE auto SumRows(const Vec<T>* acc) {
  const Tag<T> d;
  if constexpr (sizeof(T) == 4) {
    const auto even = hn::Add(hn::InterleaveLower(d, acc[0], acc[2]), hn::InterleaveUpper(d, acc[0], acc[2]));
    const auto odd = hn::Add(hn::InterleaveLower(d, acc[1], acc[3]), hn::InterleaveUpper(d, acc[1], acc[3]));
    return SumBlocks(d, hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd)));
  } else {
    return SumBlocks(d,
                     hn::Add(hn::InterleaveLower(d, acc[0], acc[1]), hn::InterleaveUpper(d, acc[0], acc[1])));
  }
}

// out[0..kGroup) = or += the row sums; the first tile of a row writes, later ones add.
template <typename T>
HWY_INLINE void PutRowSums(const Vec<T>* acc, bool first, T* out) {
  const hn::FixedTag<T, kGroup<T>> block;
  const auto sums = SumRows<T>(acc);
  hn::Store(first ? sums : hn::Add(hn::Load(block, out), sums), block, out);
}

template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const hn::TFromD<D>* p) {
  if constexpr (D::kPrivateN * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks(half, p + D::kPrivateN / 2), LoadBlocks(half, p));
  } else {
    return hn::Load(d, p);
  }
}

// A vector of row sums soon after a pass has put them: they were stored in blocks of 128 bits, and a wider
// load would wait until the stores have left the store queue (about 150 cycles behind an Update).
template <typename T>
HWY_INLINE Vec<T> LoadRowSums(const T* p) {
  return LoadBlocks(Tag<T>(), p);
}

#endif

// Runs Pass<NV>::Run(column, args...) over the columns of a row, NV <= kMax vectors at a time.
template <template <int, typename> class Pass, int kMax, typename T, typename... Args>
HWY_INLINE void OverTiles(size_t stride, const Args&... args) {
  constexpr size_t N = kLanes<T>;
  size_t col = 0;
  for (; col + kMax * N <= stride; col += kMax * N) Pass<kMax, T>::Run(col, stride, args...);
  const size_t left = (stride - col) / N;
  if constexpr (kMax > 7)
    if (left == 7) return Pass<7, T>::Run(col, stride, args...);
  if constexpr (kMax > 6)
    if (left == 6) return Pass<6, T>::Run(col, stride, args...);
  if constexpr (kMax > 5)
    if (left == 5) return Pass<5, T>::Run(col, stride, args...);
  if constexpr (kMax > 4)
    if (left == 4) return Pass<4, T>::Run(col, stride, args...);
  if constexpr (kMax > 3)
    if (left == 3) return Pass<3, T>::Run(col, stride, args...);
  if (left == 2) return Pass<2, T>::Run(col, stride, args...);
  if (left == 1) return Pass<1, T>::Run(col, stride, args...);
}

// <x, y> over n (padded) elements, the same sum for every caller.
template <typename T>
HWY_INLINE T Dot(const T* x, const T* y, size_t n) {
  Vec<T> acc = hn::Zero(Tag<T>());
  for (size_t i = 0; i < n; i += kLanes<T>) acc = hn::MulAdd(Load(x + i), Load(y + i), acc);
  return hn::GetLane(hn::SumOfLanes(Tag<T>(), acc));
}

// Sum of n (padded) elements.
template <typename T>
HWY_INLINE T Sum(const T* x, size_t n) {
  Vec<T> acc = hn::Zero(Tag<T>());
  for (size_t i = 0; i < n; i += kLanes<T>) acc = hn::Add(acc, LoadRowSums(x + i));
  return hn::GetLane(hn::SumOfLanes(Tag<T>(), acc));
}

// y = a x over n (padded) elements; y may be x.
template <typename T>
HWY_INLINE void Scale(T a, const T* x, size_t n, T* y) {
  for (size_t i = 0; i < n; i += kLanes<T>) Store(hn::Mul(Set(a), LoadRowSums(x + i)), y + i);
}

// y = value
template <typename T>
HWY_INLINE void Fill(T value, size_t n, T* y) {
  for (size_t i = 0; i < n; i += kLanes<T>) Store(Set(value), y + i);
}

template <int NV, typename T>
struct RowDotsPass {
  static HWY_INLINE void Run(size_t col, size_t stride, const T* S, size_t rows, const T* x, T* out) {
    Vec<T> xs[NV];
    for (int j = 0; j < NV; ++j) xs[j] = Load(x + col + j * kLanes<T>);
    for (size_t i = 0; i < rows; i += kGroup<T>) {
      Vec<T> acc[kGroup<T>];
      for (size_t r = 0; r < kGroup<T>; ++r) {
        const T* row = S + (i + r) * stride + col;
        acc[r] = hn::Mul(Load(row), xs[0]);
        for (int j = 1; j < NV; ++j) acc[r] = hn::MulAdd(Load(row + j * kLanes<T>), xs[j], acc[r]);
      }
      PutRowSums<T>(acc, col == 0, out + i);
    }
  }
};

// out_i = <S_i, x>
template <typename T>
HWY_NOINLINE void RowDots(const T* S, size_t rows, size_t stride, const T* x, T* out) {
  OverTiles<RowDotsPass, kTile, T>(stride, S, rows, x, out);
}

template <int NV, typename T>
struct RowNormsPass {
  static HWY_INLINE void Run(size_t col, size_t stride, const T* S, size_t rows, T* out) {
    for (size_t i = 0; i < rows; i += kGroup<T>) {
      Vec<T> acc[kGroup<T>];
      for (size_t r = 0; r < kGroup<T>; ++r) {
        const T* row = S + (i + r) * stride + col;
        for (int j = 0; j < NV; ++j) {
          const auto s = Load(row + j * kLanes<T>);
          acc[r] = j == 0 ? hn::Mul(s, s) : hn::MulAdd(s, s, acc[r]);
        }
      }
      PutRowSums<T>(acc, col == 0, out + i);
    }
  }
};

// out_i = |S_i|^2, bit for bit what Update measures.
template <typename T>
HWY_NOINLINE void RowNorms(const T* S, size_t rows, size_t stride, T* out) {
  OverTiles<RowNormsPass, kTile, T>(stride, S, rows, out);
}

template <int NV, typename T>
struct ColumnSumPass {
  static HWY_INLINE void Run(size_t col, size_t stride, const T* w, const T* S, size_t rows, T* out) {
    // Two sets of sums, even and odd rows: one set of four is bound by the latency of the additions.
    Vec<T> even[NV], odd[NV];
    for (int j = 0; j < NV; ++j) even[j] = odd[j] = hn::Zero(Tag<T>());
    for (size_t i = 0; i < rows; i += 2) {
      const T* row = S + i * stride + col;
      const auto w0 = Set(w[i]), w1 = Set(w[i + 1]);
      for (int j = 0; j < NV; ++j) {
        even[j] = hn::MulAdd(w0, Load(row + j * kLanes<T>), even[j]);
        odd[j] = hn::MulAdd(w1, Load(row + stride + j * kLanes<T>), odd[j]);
      }
    }
    for (int j = 0; j < NV; ++j) Store(hn::Add(even[j], odd[j]), out + col + j * kLanes<T>);
  }
};

// out = sum_i w_i S_i
template <typename T>
HWY_NOINLINE void ColumnSum(const T* w, const T* S, size_t rows, size_t stride, T* out) {
  OverTiles<ColumnSumPass, kTile, T>(stride, w, S, rows, out);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_VEC_INL_H_
