// Products of small matrices that stay in cache, and the transpose of one.
//
// Rows are padded to whole vectors. Every element of a product is summed in the order of the inner dimension,
// whatever the sizes, so the result of a row does not depend on the other rows.
#if defined(LATTICE_KERNELS_CHUNK_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CHUNK_PRODUCTS_INL_H_
#undef LATTICE_KERNELS_CHUNK_PRODUCTS_INL_H_
#else
#define LATTICE_KERNELS_CHUNK_PRODUCTS_INL_H_
#endif

#include "kernels/engine/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

// The left factor: element (i, k) is at data[i * row + k * column].
template <typename T>
struct Left {
  const T* data;
  size_t row, column;
};
template <typename T>
HWY_INLINE Left<T> Rows(const T* data, size_t stride) {
  return {data, stride, 1};
}
template <typename T>
HWY_INLINE Left<T> Columns(const T* data, size_t stride) {
  return {data, 1, stride};
}

// The right factor and the result: `stride` elements a row, all of them computed.
template <typename T>
struct Right {
  const T* data;
  size_t stride;
};

// What the product is added to or subtracted from: nothing, a matrix, or a matrix whose row i is multiplied
// by scale[i].
template <typename T>
struct Onto {
  const T* from = nullptr;
  const T* scale = nullptr;
};

// The micro-kernel: kRows rows from i on by NV vectors of columns from col on, held in registers.
template <bool kMinus, size_t kRows, int NV, typename T>
HWY_INLINE void ProductBlock(size_t i, size_t col, size_t inner, const Left<T>& a, const Right<T>& b,
                             const Onto<T>& onto, T* out) {
  constexpr size_t N = kLanes<T>;
  Vec<T> acc[kRows][NV];
  for (size_t r = 0; r < kRows; ++r) {
    for (int j = 0; j < NV; ++j) {
      acc[r][j] =
          onto.from == nullptr ? hn::Zero(Tag<T>()) : Load(onto.from + (i + r) * b.stride + col + j * N);
      if (onto.scale != nullptr) acc[r][j] = hn::Mul(Set(onto.scale[i + r]), acc[r][j]);
    }
  }
  const T* left = a.data + i * a.row;
  const T* right = b.data + col;
  for (size_t k = 0; k < inner; ++k, left += a.column, right += b.stride) {
    Vec<T> bs[NV];
    for (int j = 0; j < NV; ++j) bs[j] = Load(right + j * N);
    for (size_t r = 0; r < kRows; ++r) {
      const auto x = Set(left[r * a.row]);
      for (int j = 0; j < NV; ++j) {
        acc[r][j] = kMinus ? hn::NegMulAdd(x, bs[j], acc[r][j]) : hn::MulAdd(x, bs[j], acc[r][j]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (int j = 0; j < NV; ++j) Store(acc[r][j], out + (i + r) * b.stride + col + j * N);
  }
}

template <bool kMinus, int NV, typename T>
HWY_INLINE void ProductColumns(size_t rows, size_t col, size_t inner, const Left<T>& a, const Right<T>& b,
                               const Onto<T>& onto, T* out) {
  size_t i = 0;
  for (; i + 4 <= rows; i += 4) ProductBlock<kMinus, 4, NV>(i, col, inner, a, b, onto, out);
  for (; i < rows; ++i) ProductBlock<kMinus, 1, NV>(i, col, inner, a, b, onto, out);
}

// out = onto + a b, or onto - a b with kMinus. `out` may be the matrix of `onto`.
template <bool kMinus, typename T>
HWY_NOINLINE void Product(size_t rows, size_t inner, const Left<T>& a, const Right<T>& b, const Onto<T>& onto,
                          T* out) {
  // 4 x 4 sums need the 32 registers of AVX-512; with 16, 4 x 2 are held.
  constexpr int kWide = kLanes<T> * sizeof(T) >= 64 ? 4 : 2;
  constexpr size_t N = kLanes<T>;
  size_t col = 0;
  for (; col + kWide * N <= b.stride; col += kWide * N) {
    ProductColumns<kMinus, kWide>(rows, col, inner, a, b, onto, out);
  }
  for (; col < b.stride; col += N) ProductColumns<kMinus, 1>(rows, col, inner, a, b, onto, out);
}

#if HWY_TARGET != HWY_SCALAR
// Stores the 128-bit blocks of v at out, out + step, ...
template <class D, class V>
HWY_INLINE void StoreBlocks(D d, V v, size_t step, hn::TFromD<D>* out) {
  if constexpr (D::kPrivateN * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    StoreBlocks(half, hn::LowerHalf(half, v), step, out);
    StoreBlocks(half, hn::UpperHalf(half, v), step, out + hn::Lanes(half) / kGroup<hn::TFromD<D>> * step);
  } else {
    hn::StoreU(v, d, out);
  }
}
#endif

// out [columns][rows] = transpose of x [rows][columns]. Rows of both are whole vectors, and `rows` is a
// multiple of kRowBlock.
template <typename T>
HWY_NOINLINE void Transpose(const T* x, size_t rows, size_t columns, T* out) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) out[j * rows + i] = x[i * columns + j];
  }
#else
  const Tag<T> d;
  constexpr size_t kSide = kGroup<T>;
  for (size_t i = 0; i < rows; i += kSide) {
    for (size_t j = 0; j < columns; j += kLanes<T>) {
      const T* at = x + i * columns + j;
      T* to = out + j * rows + i;
      const size_t step = kSide * rows;
      if constexpr (sizeof(T) == 4) {
        const auto v0 = Load(at), v1 = Load(at + columns), v2 = Load(at + 2 * columns),
                   v3 = Load(at + 3 * columns);
        const auto low_even = hn::InterleaveLower(d, v0, v2), high_even = hn::InterleaveUpper(d, v0, v2);
        const auto low_odd = hn::InterleaveLower(d, v1, v3), high_odd = hn::InterleaveUpper(d, v1, v3);
        StoreBlocks(d, hn::InterleaveLower(d, low_even, low_odd), step, to);
        StoreBlocks(d, hn::InterleaveUpper(d, low_even, low_odd), step, to + rows);
        StoreBlocks(d, hn::InterleaveLower(d, high_even, high_odd), step, to + 2 * rows);
        StoreBlocks(d, hn::InterleaveUpper(d, high_even, high_odd), step, to + 3 * rows);
      } else {
        const auto v0 = Load(at), v1 = Load(at + columns);
        StoreBlocks(d, hn::InterleaveLower(d, v0, v1), step, to);
        StoreBlocks(d, hn::InterleaveUpper(d, v0, v1), step, to + rows);
      }
    }
  }
#endif
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CHUNK_PRODUCTS_INL_H_
