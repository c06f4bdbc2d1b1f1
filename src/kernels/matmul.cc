#include "kernels/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "kernels/arena.h"
#include "kernels/fetch_ahead.h"
#include "kernels/isa.h"
#include "kernels/matmul_avx512.h"
#include "kernels/product_blocks.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVec = hn::Vec<F32>;

// Rows of x that share the loads of 4 rows of W: as many sums as there are registers for.
constexpr int kColumns = HWY_TARGET <= HWY_AVX3 ? 6 : 2;

// Columns between two steps of FetchAhead.
constexpr int64_t kAheadStep = 16;

HWY_INLINE FloatVec LoadWeights(F32 d, const float* w) { return hn::LoadU(d, w); }
HWY_INLINE FloatVec LoadWeights(F32 d, const uint16_t* w) {
  const hn::Rebind<uint16_t, F32> narrow;
  const hn::RebindToUnsigned<F32> wide;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(narrow, w))));
}

// The first n of a vector, zeros behind: copied, because nothing may be read beyond the end of a mapped file.
template <typename W>
HWY_INLINE FloatVec LoadFirst(F32 d, const W* w, int64_t n) {
  W padded[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(padded, w, static_cast<size_t>(n) * sizeof(W));
  return LoadWeights(d, padded);
}

// The sums of the lanes of four vectors, each added in the same order as the others.
HWY_INLINE void Totals(FloatVec a, FloatVec b, FloatVec c, FloatVec d, float* out) {
  const FloatVec sums[4] = {a, b, c, d};
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) hn::StoreU(sums[i], F32(), out + i);
#else
  hn::StoreU(SumRows<float>(sums), hn::FixedTag<float, 4>(), out);
#endif
}

// R rows of W with C rows of x.
template <int R, int C, typename W>
HWY_INLINE void Tile(const W* w, const float* x, int64_t cols, float* y, int64_t y_stride,
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
    for (int r = 0; r < R; ++r) row[r] = LoadWeights(d, w + r * cols + k);
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

// The last C' < kColumns rows of x.
template <int R, int C, typename W>
HWY_INLINE void LastColumns(int64_t left, const W* w, const float* x, int64_t cols, float* y,
                            int64_t y_stride, FetchAhead& ahead) {
  if constexpr (C > 0) {
    if (left == C) return Tile<R, C>(w, x, cols, y, y_stride, ahead);
    LastColumns<R, C - 1>(left, w, x, cols, y, y_stride, ahead);
  }
}

template <int R, typename W>
void Rows(const MatMul& p, const W* w, int64_t row, int64_t first, int64_t last) {
  const int64_t cols = p.w.cols, tiles = (last - first + kColumns - 1) / kColumns;
  FetchAhead ahead(w, R * cols * static_cast<int64_t>(sizeof(W)),
                   std::max<int64_t>(1, cols / kAheadStep) * tiles);
  int64_t m = first;
  for (; m + kColumns <= last; m += kColumns) {
    Tile<R, kColumns>(w, p.x + m * cols, cols, p.y + m * p.w.rows + row, p.w.rows, ahead);
  }
  LastColumns<R, kColumns - 1>(last - m, w, p.x + m * cols, cols, p.y + m * p.w.rows + row, p.w.rows, ahead);
}

void Widen(const uint16_t* w, int64_t count, float* out) {
  const F32 d;
  const int64_t N = hn::Lanes(d);
  int64_t i = 0;
  for (; i + N <= count; i += N) hn::StoreU(LoadWeights(d, w + i), d, out + i);
  for (; i < count; ++i) {
    const uint32_t bits = uint32_t{w[i]} << 16;
    std::memcpy(out + i, &bits, sizeof(bits));
  }
}

// Many rows of x: bf16 weights are widened once for all of them.
template <int R>
void SharedRows(const MatMul& p, const float* w, int64_t row, int64_t first, int64_t last) {
  Rows<R>(p, w, row, first, last);
}
template <int R>
void SharedRows(const MatMul& p, const uint16_t* w, int64_t row, int64_t first, int64_t last) {
  if (last - first <= kColumns) return Rows<R>(p, w, row, first, last);
  float* wide = static_cast<float*>(ThreadArena(static_cast<size_t>(R * p.w.cols) * sizeof(float)));
  Widen(w, R * p.w.cols, wide);
  Rows<R>(p, wide, row, first, last);
}

template <typename W>
void Product(const MatMul& p, int64_t first, int64_t last) {
  constexpr int64_t kCacheBytes = 384 << 10;
  const W* w = static_cast<const W*>(p.w.data);
  OverProductBlocks(p.count, kCacheBytes / (p.w.cols * static_cast<int64_t>(sizeof(float))), kColumns, first,
                    last, [&](auto r, int64_t row, int64_t m, int64_t end) {
                      SharedRows<r()>(p, w + row * p.w.cols, row, m, end);
                    });
}

// One row of W with one row of x.
HWY_INLINE float IntegerDot(const int8_t* w, const int16_t* x, int64_t cols) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<int8_t, decltype(d)> narrow;
  const hn::RepartitionToWide<decltype(d)> wide;
  const int64_t N = hn::Lanes(d);
  // A lane holds 1,040 of the largest products.
  const int64_t most = 1024 * static_cast<int64_t>(hn::Lanes(wide));
  const F32 f32;
  auto sums = hn::Zero(f32);
  int64_t k = 0;
  while (k + N <= cols) {
    auto even = hn::Zero(wide), odd = hn::Zero(wide);
    for (const int64_t end = std::min(cols, k + most); k + N <= end; k += N) {
      const auto a = hn::PromoteTo(d, hn::LoadU(narrow, w + k));
      even = hn::ReorderWidenMulAccumulate(wide, a, hn::LoadU(d, x + k), even, odd);
    }
    sums = hn::Add(sums, hn::Add(hn::ConvertTo(f32, even), hn::ConvertTo(f32, odd)));
  }
  int64_t rest = 0;
  for (; k < cols; ++k) rest += int64_t{w[k]} * x[k];
  return hn::GetLane(hn::SumOfLanes(f32, sums)) + static_cast<float>(rest);
}

void ProductInt8(const MatMul& p, int64_t first, int64_t last) {
  const int64_t cols = p.w.cols, stride = Rows16::Stride(cols);
  for (int64_t row = first; row < last; ++row) {
    const int8_t* w = static_cast<const int8_t*>(p.w.data) + row * cols;
    for (int64_t m = 0; m < p.count; ++m) {
      p.y[m * p.w.rows + row] =
          IntegerDot(w, p.x16.data + m * stride, cols) * (p.x16.scales[m] * p.w.scales[row]);
    }
  }
}

HWY_INLINE float LargestSize(const float* x, int64_t n) {
  const F32 d;
  const int64_t N = hn::Lanes(d);
  auto top = hn::Zero(d), nan = hn::Zero(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto v = hn::LoadU(d, x + i);
    top = hn::Max(top, hn::Abs(v));
    // 0 for finite values, NaN else; a maximum alone may drop a NaN.
    nan = hn::Add(nan, hn::Sub(v, v));
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, top)), bad = hn::GetLane(hn::SumOfLanes(d, nan));
  for (; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    bad += x[i] - x[i];
  }
  return largest + bad;
}

void QuantizeRow(const float* x, int64_t cols, int16_t* out, float* scale) {
  constexpr float kRange = 127 * 128;
  const float largest = LargestSize(x, cols);
  std::fill(out + cols, out + Rows16::Stride(cols), int16_t{0});
  // The smallest denormals have no inverse; they are as good as zero.
  if (!std::isfinite(largest) || largest < std::numeric_limits<float>::min() * kRange) {
    std::fill(out, out + cols, int16_t{0});
    *scale = std::isfinite(largest) ? 0 : std::numeric_limits<float>::quiet_NaN();
    return;
  }
  *scale = largest / kRange;
  const float inverse = kRange / largest;
  const F32 d;
  const hn::Rebind<int16_t, F32> d16;
  const int64_t N = hn::Lanes(d);
  int64_t i = 0;
  for (; i + N <= cols; i += N) {
    const auto a = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse)));
    hn::StoreU(hn::DemoteTo(d16, a), d16, out + i);
  }
  for (; i < cols; ++i) out[i] = static_cast<int16_t>(std::nearbyint(x[i] * inverse));
}

void Quantize(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last) {
  const int64_t stride = Rows16::Stride(cols);
  for (int64_t m = first; m < last; ++m)
    QuantizeRow(x + m * cols, cols, out.data + m * stride, out.scales + m);
}

void ProductF32(const MatMul& p, int64_t first, int64_t last) { Product<float>(p, first, last); }
void ProductBf16(const MatMul& p, int64_t first, int64_t last) { Product<uint16_t>(p, first, last); }

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ProductF32);
HWY_EXPORT(ProductBf16);
HWY_EXPORT(ProductInt8);
HWY_EXPORT(Quantize);
HWY_EXPORT(Widen);

int64_t WeightMatrix::Bytes() const {
  switch (format) {
    case WeightFormat::kF32:
      return rows * cols * 4;
    case WeightFormat::kBf16:
      return rows * cols * 2;
    case WeightFormat::kInt8:
      return rows * cols + rows * 4;
  }
  return 0;
}

void MatMulRows(const MatMul& p, int64_t first, int64_t last) {
  InitIsa();
  switch (p.w.format) {
    case WeightFormat::kF32:
      return HWY_DYNAMIC_DISPATCH(ProductF32)(p, first, last);
    case WeightFormat::kBf16:
      return HasBf16() ? MatMulBf16(p, first, last) : HWY_DYNAMIC_DISPATCH(ProductBf16)(p, first, last);
    case WeightFormat::kInt8:
      return HasVnni() && p.w.cols <= kMostVnniColumns ? MatMulVnni(p, first, last)
                                                       : HWY_DYNAMIC_DISPATCH(ProductInt8)(p, first, last);
  }
}

void QuantizeRows(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Quantize)(x, cols, out, first, last);
}

bool WantsBf16Rows() {
  InitIsa();
  return HasBf16();
}

void RoundRows(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last) {
  RoundRowsBf16(x, cols, out, first, last);
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
