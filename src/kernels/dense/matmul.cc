// Matrix products with float32 weights, and with bf16 weights on CPUs without bf16 instructions; the choice
// of the product for a weight format; conversions of weights.
#include "kernels/dense/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/matmul.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/dense/matmul_int4.h"
#include "kernels/dense/matmul_int8.h"
#include "kernels/dense/matmul_native.h"
#include "kernels/dense/product_blocks.h"
#include "kernels/dense/product_panels.h"
#include "kernels/engine/fetch_ahead.h"
#include "kernels/engine/vec-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVec = hn::Vec<F32>;

// Rows of x in a tile: with 4 rows of W, as many sums as there are registers for.
constexpr int kColumns = HWY_TARGET <= HWY_AVX3 ? 6 : 2;

// Columns between two steps of the prefetching.
constexpr int64_t kAheadStep = 16;

// The n elements at w, padded with zeros. They are copied first, because nothing may be read beyond the end
// of a mapped file.
HWY_INLINE FloatVec LoadFirst(F32 d, const float* w, int64_t n) {
  float padded[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy_n(w, n, padded);
  return hn::LoadU(d, padded);
}

// The sums of the lanes of four vectors, all added in the same order.
HWY_INLINE void Totals(FloatVec a, FloatVec b, FloatVec c, FloatVec d, float* out) {
  const FloatVec sums[4] = {a, b, c, d};
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) hn::StoreU(sums[i], F32(), out + i);
#else
  hn::StoreU(SumRows<float>(sums), hn::FixedTag<float, 4>(), out);
#endif
}

// The micro-kernel: R rows of W with C rows of x.
template <int R, int C>
HWY_INLINE void Tile(const float* w, const float* x, int64_t cols, float* y, int64_t y_stride,
                     FetchAhead& ahead) {
  const F32 d;
  const int64_t N = hn::Lanes(d);
  FloatVec sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + N <= cols; k += N) {
    FloatVec row[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) row[r] = hn::LoadU(d, w + r * cols + k);
    if (R > 1 && k % kAheadStep == 0) ahead.Step();
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const FloatVec column = hn::LoadU(d, x + c * cols + k);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r][c] = hn::MulAdd(row[r], column, sum[r][c]);
    }
  }
  if (k < cols) {
    for (int c = 0; c < C; ++c) {
      const FloatVec column = LoadFirst(d, x + c * cols + k, cols - k);
      for (int r = 0; r < R; ++r) {
        sum[r][c] = hn::MulAdd(LoadFirst(d, w + r * cols + k, cols - k), column, sum[r][c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    if constexpr (R == 4) {
      Totals(sum[0][c], sum[1][c], sum[2][c], sum[3][c], y + c * y_stride);
    } else {
      static_assert(R == 1);
      float same[4];
      Totals(sum[0][c], sum[0][c], sum[0][c], sum[0][c], same);
      y[c * y_stride] = same[0];
    }
  }
}

// The micro-kernel for the last `left` rows of x, fewer than kColumns.
template <int R, int C>
HWY_INLINE void LastColumns(int64_t left, const float* w, const float* x, int64_t cols, float* y,
                            int64_t y_stride, FetchAhead& ahead) {
  if constexpr (C > 0) {
    if (left == C) return Tile<R, C>(w, x, cols, y, y_stride, ahead);
    LastColumns<R, C - 1>(left, w, x, cols, y, y_stride, ahead);
  }
}

// R rows of W, from `row` on, with rows [first, last) of x.
template <int R>
void Rows(const MatMul& p, const float* w, int64_t row, int64_t first, int64_t last) {
  const int64_t cols = p.w.cols, tiles = (last - first + kColumns - 1) / kColumns;
  FetchAhead ahead(w, R * cols * static_cast<int64_t>(sizeof(float)),
                   std::max<int64_t>(1, cols / kAheadStep) * tiles, tiles, p.also_prefetch);
  int64_t m = first;
  for (; m + kColumns <= last; m += kColumns) {
    Tile<R, kColumns>(w, p.x + m * cols, cols, p.y + m * p.w.rows + row, p.w.rows, ahead);
  }
  LastColumns<R, kColumns - 1>(last - m, w, p.x + m * cols, cols, p.y + m * p.w.rows + row, p.w.rows, ahead);
}

void ProductF32(const MatMul& p, int64_t first, int64_t last) {
  constexpr int64_t kCachedRows = 64;
  const float* w = static_cast<const float*>(p.w.data);
  OverBlocks(p.count, p.w.cols * static_cast<int64_t>(sizeof(float)), kColumns, kCachedRows, first, last,
             [&](int64_t row, int64_t stop, int64_t m, int64_t end) {
               // The product with one row of x is bound by memory, which is read fastest as one stream.
               for (; p.count > 1 && row + 4 <= stop; row += 4) Rows<4>(p, w + row * p.w.cols, row, m, end);
               for (; row < stop; ++row) Rows<1>(p, w + row * p.w.cols, row, m, end);
             });
}

// The two columns of bf16 in each word, as float32.
HWY_INLINE FloatVec FirstColumn(F32 d, hn::Vec<hn::RebindToUnsigned<F32>> words) {
  return hn::BitCast(d, hn::ShiftLeft<16>(words));
}
HWY_INLINE FloatVec SecondColumn(F32 d, hn::Vec<hn::RebindToUnsigned<F32>> words) {
  const hn::RebindToUnsigned<F32> d32;
  return hn::BitCast(d, hn::And(words, hn::Set(d32, 0xffff0000u)));
}

// How many vectors of a panel are multiplied with C rows of x at a time: as many as there are registers for.
template <int C>
constexpr int kVectors = HWY_MIN(static_cast<int>(kPanelRows / HWY_LANES(float)), HWY_TARGET <= HWY_AVX3 ? 2
                                                                                  : C <= 2               ? 4
                                                                                  : C <= 4               ? 2
                                                                                                         : 1);

// The micro-kernel for bf16: rows of a panel, kVectors vectors of them from `row` on, with C rows of float32.
// sums is [C][kPanelRows].
template <int C>
HWY_INLINE void SumBf16(const uint32_t* panel, int64_t row, const float* x, int64_t cols, float* sums,
                        FetchAhead& ahead) {
  const F32 d;
  const hn::RebindToUnsigned<F32> d32;
  const int64_t N = hn::Lanes(d);
  constexpr int V = kVectors<C>;
  FloatVec sum[C][V];
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < V; ++v) sum[c][v] = hn::Zero(d);
  }
  const uint32_t* w = panel + row;
  for (int64_t k = 0; k < cols; k += 2, w += kPanelRows) {
    if (k % (2 * kAheadWords) == 0) ahead.Step();
    const bool pair = k + 1 < cols;
    FloatVec even[V], odd[V];
    LATTICE_UNROLL for (int v = 0; v < V; ++v) {
      const auto words = hn::LoadU(d32, w + v * N);
      even[v] = FirstColumn(d, words);
      odd[v] = SecondColumn(d, words);
    }
    LATTICE_UNROLL for (int c = 0; c < C; ++c) {
      const auto first = hn::Set(d, x[c * cols + k]), second = hn::Set(d, pair ? x[c * cols + k + 1] : 0.0f);
      LATTICE_UNROLL for (int v = 0; v < V; ++v) {
        sum[c][v] = hn::MulAdd(odd[v], second, hn::MulAdd(even[v], first, sum[c][v]));
      }
    }
  }
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < V; ++v) hn::StoreU(sum[c][v], d, sums + c * kPanelRows + row + v * N);
  }
}

void ProductBf16(const MatMul& p, int64_t first, int64_t last) {
  OverPanels(p, first, last, [&](auto count, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    constexpr int C = count();
    const auto* panel = reinterpret_cast<const uint32_t*>(slice.data);
    float sums[C * kPanelRows];
    for (int64_t row = 0; row < kPanelRows; row += kVectors<C> * hn::Lanes(F32()))
      SumBf16<C>(panel, row, p.x + m * p.w.cols, p.w.cols, sums, ahead);
    for (int c = 0; c < C; ++c) {
      std::copy(sums + c * kPanelRows + slice.first, sums + c * kPanelRows + slice.last,
                p.y + (m + c) * p.w.rows + slice.row + slice.first);
    }
  });
}

void Widen(const uint16_t* w, int64_t count, float* out) {
  const F32 d;
  const int64_t N = hn::Lanes(d);
  const hn::Rebind<uint16_t, F32> narrow;
  const hn::RebindToUnsigned<F32> wide;
  int64_t i = 0;
  for (; i + N <= count; i += N) {
    hn::StoreU(FirstColumn(d, hn::PromoteTo(wide, hn::LoadU(narrow, w + i))), d, out + i);
  }
  for (; i < count; ++i) {
    const uint32_t bits = uint32_t{w[i]} << 16;
    std::memcpy(out + i, &bits, sizeof(bits));
  }
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ProductF32);
HWY_EXPORT(ProductBf16);
HWY_EXPORT(Widen);

void MatMulRows(const MatMul& p, int64_t first, int64_t last) {
  InitIsa();
  switch (p.w.format) {
    case WeightFormat::kF32:
      return HWY_DYNAMIC_DISPATCH(ProductF32)(p, first, last);
    case WeightFormat::kBf16:
      return HasNativeBf16() ? MatMulBf16Native(p, first, last)
                             : HWY_DYNAMIC_DISPATCH(ProductBf16)(p, first, last);
    case WeightFormat::kInt8:
      return HasNativeInt8() ? MatMulInt8Native(p, first, last) : MatMulInt8(p, first, last);
    case WeightFormat::kInt4:
      return HasNativeInt4() ? MatMulInt4Native(p, first, last) : MatMulInt4(p, first, last);
  }
}

bool WantsBf16Rows() {
  InitIsa();
  return HasNativeBf16();
}

void RoundRows(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last) {
  RoundRowsNative(x, cols, out, first, last);
}

void WidenBf16(const uint16_t* w, int64_t count, float* out) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Widen)(w, count, out);
}

void QuantizeWeights(const float* w, int64_t cols, int8_t* q, float* scale) {
  float largest = 0;
  for (int64_t i = 0; i < cols; ++i) largest = std::max(largest, std::fabs(w[i]));
  *scale = largest / 127;
  const float inverse = *scale > 0 ? 1 / *scale : 0;
  const bool usable = std::isfinite(inverse);
  if (!usable) *scale = 0;
  for (int64_t i = 0; i < cols; ++i) {
    q[i] = usable ? static_cast<int8_t>(std::clamp(std::nearbyint(w[i] * inverse), -127.0f, 127.0f)) : 0;
  }
}

void RoundToBf16(const float* w, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, w + i, sizeof(bits));
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    // To the nearest, ties to even.
    out[i] = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
}

}  // namespace lattice::kernels
#endif
