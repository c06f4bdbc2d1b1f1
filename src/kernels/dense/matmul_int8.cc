// The int8 matrix product for CPUs without AVX-512 VNNI, and the quantisation of activations.
#include "kernels/dense/matmul_int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/matmul_int8.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "kernels/dense/byte_words-inl.h"
#include "kernels/dense/product_panels.h"
#include "kernels/engine/fetch_ahead.h"
#include "kernels/engine/vec-inl.h"
#include "kernels/isa.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How many vectors of a panel are multiplied at a time.
constexpr int kVectors = HWY_MIN(static_cast<int>(kPanelRows / HWY_LANES(float)), 2);

// The micro-kernel: kVectors vectors of rows of one block of a panel with a tile of C rows of x. The exact
// integer sums are scaled and added to totals [C][kPanelRows].
template <int C>
HWY_INLINE void AddBlock(const uint32_t* w, const uint32_t* x, int64_t words, const int32_t* offsets,
                         const float* scales, float* totals, FetchAhead& ahead) {
  const F32 f32;
  const I32 i32;
  const int64_t N = hn::Lanes(i32);
  IntVec sum[C][kVectors];
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < kVectors; ++v) sum[c][v] = hn::Set(i32, offsets[c]);
  }
  for (int64_t k = 0; k < words; ++k, w += kPanelRows, x += C) {
    if (k % kAheadWords == 0) ahead.Step();
    Words bytes[kVectors];
    for (int v = 0; v < kVectors; ++v)
      bytes[v] = WordsOfW(hn::BitCast(i32, hn::LoadU(hn::RebindToUnsigned<I32>(), w + v * N)));
    LATTICE_UNROLL for (int c = 0; c < C; ++c) {
      const Words word = WordsOfX(x[c]);
      LATTICE_UNROLL for (int v = 0; v < kVectors; ++v) sum[c][v] = AddProducts(bytes[v], word, sum[c][v]);
    }
  }
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      float* total = totals + c * kPanelRows + v * N;
      const auto part = hn::Mul(hn::ConvertTo(f32, sum[c][v]), hn::Set(f32, scales[c]));
      hn::StoreU(hn::Add(hn::LoadU(f32, total), part), f32, total);
    }
  }
}

void Product(const MatMul& p, int64_t first, int64_t last) {
  constexpr int64_t kWords = BlockColumns(WeightFormat::kInt8) / 4;
  const int64_t words = WordsOf(p.w.format, p.w.cols), blocks = BlocksOf(p.w.format, p.w.cols);
  OverPanels(p, first, last, [&](auto count, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    constexpr int C = count();
    const auto* panel = reinterpret_cast<const uint32_t*>(slice.data);
    float totals[C * kPanelRows] = {};
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t row = 0; row < kPanelRows; row += kVectors * hn::Lanes(I32())) {
        AddBlock<C>(panel + b * kWords * kPanelRows + row, p.packed.data + m * words + b * kWords * C,
                    std::min(kWords, words - b * kWords), p.packed.offsets + m * blocks + b * C,
                    p.packed.scales + m * blocks + b * C, totals + row, ahead);
      }
    }
    for (int c = 0; c < C; ++c) {
      for (int64_t row = slice.first; row < slice.last; ++row) {
        p.y[(m + c) * p.w.rows + slice.row + row] =
            totals[c * kPanelRows + row] * p.w.scales[slice.row + row];
      }
    }
  });
}

// max |x| of n values, n being a multiple of the vector; NaN when one is not finite.
HWY_INLINE float LargestSize(const float* x, int64_t n) {
  const F32 d;
  const int64_t N = hn::Lanes(d);
  auto top = hn::Zero(d), nan = hn::Zero(d);
  for (int64_t i = 0; i < n; i += N) {
    const auto v = hn::LoadU(d, x + i);
    top = hn::Max(top, hn::Abs(v));
    // v - v is 0 for finite values and NaN for others. The maximum alone may drop a NaN.
    nan = hn::Add(nan, hn::Sub(v, v));
  }
  return hn::GetLane(hn::MaxOfLanes(d, top)) + SumLanes(d, nan);
}

// Quantises a block of x [kBlock]; returns the sum of the integers.
template <int64_t kBlock>
HWY_INLINE int32_t QuantizeBlock(const float* x, int8_t* out, float* scale) {
  constexpr float kRange = 127;
  const float largest = LargestSize(x, kBlock);
  // The reciprocal of the smallest values would overflow; they are taken as zero.
  if (!std::isfinite(largest) || largest < std::numeric_limits<float>::min() * kRange) {
    std::fill_n(out, kBlock, int8_t{0});
    *scale = std::isfinite(largest) ? 0 : std::numeric_limits<float>::quiet_NaN();
    return 0;
  }
  *scale = largest / kRange;
  const F32 d;
  const hn::Rebind<int8_t, F32> d8;
  const auto inverse = hn::Set(d, kRange / largest);
  auto sum = hn::Zero(I32());
  for (int64_t i = 0; i < kBlock; i += hn::Lanes(d)) {
    const auto a = NearestIntegers(d, hn::Mul(hn::LoadU(d, x + i), inverse));
    sum = hn::Add(sum, a);
    hn::StoreU(hn::DemoteTo(d8, a), d8, out + i);
  }
  return SumLanes(I32(), sum);
}

// For products with weights of kWeights.
template <WeightFormat kWeights>
void QuantizeFor(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last) {
  constexpr int64_t kBlock = BlockColumns(kWeights);
  const int64_t words = WordsOf(WeightFormat::kInt8, cols), blocks = BlocksOf(kWeights, cols);
  for (int64_t m = first; m < last; ++m) {
    const int64_t step = out.Step(m), at = out.Index(m, blocks);
    uint32_t* to = out.data + out.Index(m, words);
    for (int64_t b = 0; b < blocks; ++b) {
      const float* from = x + m * cols + b * kBlock;
      float padded[kBlock];
      if (cols - b * kBlock < kBlock) {
        std::fill(std::copy_n(from, cols - b * kBlock, padded), padded + kBlock, 0.0f);
        from = padded;
      }
      int8_t bytes[kBlock];
      const int32_t sum = QuantizeBlock<kBlock>(from, bytes, out.scales + at + b * step);
      if constexpr (kWeights == WeightFormat::kInt4) {
        out.sums[at + b * step] = static_cast<float>(sum);
      } else {
        out.offsets[at + b * step] = -128 * sum;
      }
      const int64_t count = std::min(kBlock / 4, words - b * kBlock / 4);
      for (int64_t k = 0; k < count; ++k, to += step) std::memcpy(to, bytes + 4 * k, 4);
    }
  }
}

void Quantize(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last) {
  const auto quantize = out.weights == WeightFormat::kInt4 ? QuantizeFor<WeightFormat::kInt4>
                                                           : QuantizeFor<WeightFormat::kInt8>;
  quantize(x, cols, out, first, last);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(Product);
HWY_EXPORT(Quantize);

void MatMulInt8(const MatMul& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Product)(p, first, last);
}

void QuantizeRows(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Quantize)(x, cols, out, first, last);
}

}  // namespace lattice::kernels
#endif
