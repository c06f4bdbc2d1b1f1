// SIMD primitives for rules: element-wise loops, dot products, and passes over a state held in cache (w @ S,
// <S_i, x>, |S_i|^2).
//
// A state is `rows` rows of `stride` elements, both padded with zeros to whole vectors. Vectors over slots or
// over the width are padded alike, so no loop has a tail. Every sum is added in an order that depends on the
// sizes only, never on where a sequence was split.
//
// A pass that computes one sum per row only stores the sums; what a rule makes of them is a loop of its own.
// Done inside the pass, it took the registers that the rows need (110 of 2,005 cycles a token at 64 x 64).
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_ENGINE_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_ENGINE_VEC_INL_H_
#undef LATTICE_KERNELS_ENGINE_VEC_INL_H_
#else
#define LATTICE_KERNELS_ENGINE_VEC_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/lanes-inl.h"

// For the lambda inside a pass: otherwise the compiler makes calls of the longer ones and spills their
// vectors.
#ifndef LATTICE_INLINE
#define LATTICE_INLINE HWY_ATTR __attribute__((always_inline))
#endif

// For a loop over an array of vectors: unrolled, they stay in registers instead of memory.
#ifndef LATTICE_UNROLL
#ifdef __clang__
#define LATTICE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LATTICE_UNROLL _Pragma("GCC unroll 8")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Vec = hn::Vec<Tag<T>>;

template <typename T>
inline constexpr size_t kLanes = HWY_LANES(T);
// Rows whose lanes are summed together: their sums fill 128 bits.
template <typename T>
inline constexpr size_t kGroup = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);
// The number of rows of a state is a multiple of this; their sums then make whole vectors.
template <typename T>
inline constexpr size_t kRowBlock = HWY_MAX(kLanes<T>, size_t{2});
// A tile is so many vectors of a row, held in registers. 32 registers hold 4 of each operand of every pass
// below.
inline constexpr int kTile = 4;

// Unaligned, because a caller's memory may be (NumPy aligns to 16 bytes); on aligned memory this costs
// nothing.
template <typename T>
HWY_INLINE Vec<T> Load(const T* p) {
  return hn::LoadU(Tag<T>(), p);
}
template <typename T>
HWY_INLINE void Store(Vec<T> v, T* p) {
  hn::StoreU(v, Tag<T>(), p);
}
template <typename T>
HWY_INLINE Vec<T> Set(T x) {
  return hn::Set(Tag<T>(), x);
}

// The sum of a vector's lanes.
template <typename T>
HWY_INLINE T Total(Vec<T> x) {
  return SumLanes(Tag<T>(), x);
}

#if HWY_TARGET != HWY_SCALAR
// Adds the 128-bit blocks of a vector.
template <class D, class V>
HWY_INLINE auto SumBlocks([[maybe_unused]] D d, V v) {
  if constexpr (D::kPrivateN * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return SumBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
#endif

// The sums of the lanes of kGroup vectors, as a vector of kGroup lanes.
template <typename T>
HWY_INLINE auto SumRows(const Vec<T>* acc) {
#if HWY_TARGET == HWY_SCALAR
  return acc[0];
#else
  const Tag<T> d;
  if constexpr (sizeof(T) == 4) {
    const auto even = hn::Add(hn::InterleaveLower(d, acc[0], acc[2]), hn::InterleaveUpper(d, acc[0], acc[2]));
    const auto odd = hn::Add(hn::InterleaveLower(d, acc[1], acc[3]), hn::InterleaveUpper(d, acc[1], acc[3]));
    return SumBlocks(d, hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd)));
  } else {
    return SumBlocks(d,
                     hn::Add(hn::InterleaveLower(d, acc[0], acc[1]), hn::InterleaveUpper(d, acc[0], acc[1])));
  }
#endif
}

// The sums of kLanes rows from i on as one vector; sums(i) gives those of rows [i, i + kGroup).
template <typename T, size_t kRows = kLanes<T>, class Sums>
HWY_INLINE auto GatherSums(size_t i, const Sums& sums) {
#if HWY_TARGET == HWY_SCALAR
  return sums(i);
#else
  if constexpr (kRows == kGroup<T>) {
    return sums(i);
  } else {
    const auto lower = GatherSums<T, kRows / 2>(i, sums);
    const auto upper = GatherSums<T, kRows / 2>(i + kRows / 2, sums);
    return hn::Combine(hn::FixedTag<T, kRows>(), upper, lower);
  }
#endif
}

// Adds the sums of one tile of the rows, a vector at a time; the first tile, at column 0, overwrites `out`.
template <typename T>
HWY_INLINE void AccumulateSums(size_t col, size_t i, Vec<T> sums, T* out) {
  Store(col == 0 ? sums : hn::Add(Load(out + i), sums), out + i);
}

// The same for the sums of kGroup rows. Read them with LoadSums if they are needed soon.
template <typename T>
HWY_INLINE void AccumulateGroupSums(size_t col, const Vec<T>* acc, T* out) {
  const hn::FixedTag<T, kGroup<T>> d;
  const auto sums = SumRows<T>(acc);
  hn::StoreU(col == 0 ? sums : hn::Add(hn::LoadU(d, out), sums), d, out);
}

// Loads sums soon after AccumulateGroupSums, in blocks of 128 bits as they were stored: the CPU cannot
// forward several stores to one wider load, which would wait until they have left the store buffer (about 150
// cycles after an Update).
template <typename T, size_t kCount = kLanes<T>>
HWY_INLINE auto LoadSums(const T* p) {
  const hn::FixedTag<T, kCount> d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Load(d, p);
#else
  if constexpr (kCount == kGroup<T>) {
    return hn::Load(d, p);
  } else {
    return hn::Combine(d, LoadSums<T, kCount / 2>(p + kCount / 2), LoadSums<T, kCount / 2>(p));
  }
#endif
}

// sum = x y for the first product of a sum, sum += x y for the others.
template <class V>
HWY_INLINE void AddProduct(bool first, V x, V y, V& sum) {
  sum = first ? hn::Mul(x, y) : hn::MulAdd(x, y, sum);
}

// Runs Pass<NV>::Run(column, stride, args...) over the columns in tiles of kMax vectors, then two, then one.
// (Each further tile size would be compiled for every pass, rule and type.)
template <template <int, typename> class Pass, int kMax, typename T, typename... Args>
HWY_INLINE void OverTiles(size_t stride, const Args&... args) {
  constexpr size_t N = kLanes<T>;
  size_t col = 0;
  for (; col + kMax * N <= stride; col += kMax * N) Pass<kMax, T>::Run(col, stride, args...);
  if constexpr (kMax > 2) {
    for (; col + 2 * N <= stride; col += 2 * N) Pass<2, T>::Run(col, stride, args...);
  }
  if (col < stride) Pass<1, T>::Run(col, stride, args...);
}

// <x, y> over n (padded) elements, the same sum for every caller.
template <typename T>
HWY_INLINE T Dot(const T* x, const T* y, size_t n) {
  Vec<T> acc = hn::Zero(Tag<T>());
  for (size_t i = 0; i < n; i += kLanes<T>) acc = hn::MulAdd(Load(x + i), Load(y + i), acc);
  return Total<T>(acc);
}

// Sum of n (padded) elements.
template <typename T>
HWY_INLINE T Sum(const T* x, size_t n) {
  Vec<T> acc = hn::Zero(Tag<T>());
  for (size_t i = 0; i < n; i += kLanes<T>) acc = hn::Add(acc, Load(x + i));
  return Total<T>(acc);
}

// y = a x over n (padded) elements; y may be x.
template <typename T>
HWY_INLINE void Scale(T a, const T* x, size_t n, T* y) {
  for (size_t i = 0; i < n; i += kLanes<T>) Store(hn::Mul(Set(a), Load(x + i)), y + i);
}

// y = value
template <typename T>
HWY_INLINE void Fill(T value, size_t n, T* y) {
  for (size_t i = 0; i < n; i += kLanes<T>) Store(Set(value), y + i);
}

template <int NV, typename T>
struct RowDotsPass {
  static HWY_INLINE void Run(size_t col, size_t stride, const T* S, size_t rows, const T* x, T* out) {
    constexpr size_t N = kLanes<T>;
    Vec<T> xs[NV];
    for (int j = 0; j < NV; ++j) xs[j] = Load(x + col + j * N);
    for (size_t i = 0; i < rows; i += N) {
      const auto sums = GatherSums<T>(i, [&](size_t first) LATTICE_INLINE {
        Vec<T> acc[kGroup<T>];
        LATTICE_UNROLL for (size_t r = 0; r < kGroup<T>; ++r) {
          const T* row = S + (first + r) * stride + col;
          acc[r] = hn::Mul(Load(row), xs[0]);
          for (int j = 1; j < NV; ++j) acc[r] = hn::MulAdd(Load(row + j * N), xs[j], acc[r]);
        }
        return SumRows<T>(acc);
      });
      AccumulateSums(col, i, sums, out);
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
    constexpr size_t N = kLanes<T>;
    for (size_t i = 0; i < rows; i += N) {
      const auto sums = GatherSums<T>(i, [&](size_t first) LATTICE_INLINE {
        Vec<T> acc[kGroup<T>];
        LATTICE_UNROLL for (size_t r = 0; r < kGroup<T>; ++r) {
          const T* row = S + (first + r) * stride + col;
          for (int j = 0; j < NV; ++j) {
            const auto s = Load(row + j * N);
            AddProduct(j == 0, s, s, acc[r]);
          }
        }
        return SumRows<T>(acc);
      });
      AccumulateSums(col, i, sums, out);
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
    // Even and odd rows have sums of their own: a single set of four is bound by the latency of the
    // additions.
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

#endif  // LATTICE_KERNELS_ENGINE_VEC_INL_H_
