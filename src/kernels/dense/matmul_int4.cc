// The int4 matrix product: integers of 0..15 with the 8-bit activations of int8.
#include "kernels/dense/matmul_int4.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/matmul_int4.cc"
#include "hwy/foreach_target.h"

#include <algorithm>

#include "hwy/highway.h"
#include "kernels/dense/byte_words-inl.h"
#include "kernels/dense/product_panels.h"
#include "kernels/engine/fetch_ahead.h"
#include "kernels/engine/vec-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Words of a group in a panel: factor and offset, then the integers. Each of those meets two words of x.
constexpr int64_t kGroupWords = kGroupBytes / 4, kXWords = kGroupColumns / 4;

// How many vectors of a panel are multiplied with C rows of x at a time: as many as there are registers for.
template <int C>
constexpr int kVectors = HWY_MIN(static_cast<int>(kPanelRows / HWY_LANES(float)), C == 1   ? 4
                                                                                  : C <= 4 ? 2
                                                                                           : 1);

// Adds the products of the integers of a group, V vectors of rows at w, with the words of x that they meet to the sums.
// x has C rows, interleaved.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
using U16 = hn::RebindToUnsigned<I16>;

// For a loop of few steps that must stay one.
#undef LATTICE_KEEP_LOOP
#ifdef __clang__
#define LATTICE_KEEP_LOOP _Pragma("clang loop unroll(disable)")
#else
#define LATTICE_KEEP_LOOP _Pragma("GCC unroll 1")
#endif

// The sums of two neighbours: unsigned bytes of w times signed bytes of x.
HWY_INLINE hn::Vec<I16> MultiplyBytes(hn::Vec<U16> w, hn::Vec<I16> x) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<I16>{_mm512_maddubs_epi16(w.raw, x.raw)};
#else
  return hn::Vec<I16>{_mm256_maddubs_epi16(w.raw, x.raw)};
#endif
}

template <int C, int V>
HWY_INLINE void AddIntegers(const uint32_t* w, const uint32_t* x, IntVec (&sum)[C][V]) {
  // 16 bits hold the sums of half a group, which are the products of 16 columns, each of at most 15 * 127.
  static_assert(kGroupColumns / 2 * 15 * 127 < 32768);
  const hn::RebindToUnsigned<I32> u32;
  const int64_t N = hn::Lanes(u32);
  const auto low = hn::Set(U16(), uint16_t{0x0f0f});
  hn::Vec<I16> part[C][V];
  LATTICE_UNROLL for (int c = 0; c < C; ++c) {
    LATTICE_UNROLL for (int v = 0; v < V; ++v) part[c][v] = hn::Zero(I16());
  }
  // Unrolled, GCC 12 puts off the additions and keeps the products in memory until then, at half the speed (13 instead
  // of 25 GB/s of weights from the cache for one row of x).
  LATTICE_KEEP_LOOP for (int64_t k = 1; k < kGroupWords; ++k, w += kPanelRows, x += 2 * C) {
    LATTICE_UNROLL for (int v = 0; v < V; ++v) {
      const auto bytes = hn::BitCast(U16(), hn::LoadU(u32, w + v * N));
      const auto first = hn::And(bytes, low), second = hn::And(hn::ShiftRight<4>(bytes), low);
      LATTICE_UNROLL for (int c = 0; c < C; ++c) {
        part[c][v] = hn::Add(part[c][v], MultiplyBytes(first, hn::BitCast(I16(), hn::Set(u32, x[c]))));
        part[c][v] = hn::Add(part[c][v], MultiplyBytes(second, hn::BitCast(I16(), hn::Set(u32, x[C + c]))));
      }
    }
  }
  const auto ones = hn::Set(I16(), int16_t{1});
  IntVec none = hn::Zero(I32());
  LATTICE_UNROLL for (int c = 0; c < C; ++c) {
    LATTICE_UNROLL for (int v = 0; v < V; ++v) sum[c][v] =
        hn::ReorderWidenMulAccumulate(I32(), part[c][v], ones, sum[c][v], none);
  }
}
#else
template <int C, int V>
HWY_INLINE void AddIntegers(const uint32_t* w, const uint32_t* x, IntVec (&sum)[C][V]) {
  const I32 i32;
  const int64_t N = hn::Lanes(i32);
  const auto low = hn::Set(i32, 0x0f0f0f0f);
  for (int64_t k = 1; k < kGroupWords; ++k, w += kPanelRows, x += 2 * C) {
    for (int v = 0; v < V; ++v) {
      const auto bytes = hn::BitCast(i32, hn::LoadU(hn::RebindToUnsigned<I32>(), w + v * N));
      const Words first = WordsOfW(hn::And(bytes, low)),
                  second = WordsOfW(hn::And(hn::ShiftRight<4>(bytes), low));
      for (int c = 0; c < C; ++c) {
        sum[c][v] = AddProducts(second, WordsOfX(x[C + c]), AddProducts(first, WordsOfX(x[c]), sum[c][v]));
      }
    }
  }
}
#endif

// The micro-kernel: kVectors vectors of rows of one group of a panel with a tile of C rows of x, whose sums and scales
// in this block are given. The results are added to totals [C][kPanelRows].
template <int C>
HWY_INLINE void AddGroup(const uint32_t* w, const uint32_t* x, const float* x_sums, const float* scales,
                         float* totals, FetchAhead& ahead) {
  constexpr int V = kVectors<C>;
  const F32 f32;
  const hn::RebindToUnsigned<F32> u32;
  const int64_t N = hn::Lanes(f32);
  IntVec sum[C][V];
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < V; ++v) sum[c][v] = hn::Zero(I32());
  }
  ahead.Step();
  AddIntegers<C, V>(w + kPanelRows, x, sum);
  LATTICE_UNROLL for (int v = 0; v < V; ++v) {
    const auto grid = hn::LoadU(u32, w + v * N);
    const auto factor = hn::BitCast(f32, hn::ShiftLeft<16>(grid)),
               offset = hn::BitCast(f32, hn::And(grid, hn::Set(u32, 0xffff0000u)));
    LATTICE_UNROLL for (int c = 0; c < C; ++c) {
      float* total = totals + c * kPanelRows + v * N;
      const auto part =
          hn::Add(hn::Mul(hn::ConvertTo(f32, sum[c][v]), factor), hn::Mul(hn::Set(f32, x_sums[c]), offset));
      hn::StoreU(hn::Add(hn::LoadU(f32, total), hn::Mul(part, hn::Set(f32, scales[c]))), f32, total);
    }
  }
}

void Product4(const MatMul& p, int64_t first, int64_t last) {
  const int64_t words = WordsOf(WeightFormat::kInt8, p.w.cols), groups = GroupsOf(p.w.cols);
  OverPanels(p, first, last, [&](auto count, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    constexpr int C = count();
    const auto* w = reinterpret_cast<const uint32_t*>(slice.data);
    float totals[C * kPanelRows] = {};
    for (int64_t g = 0; g < groups; ++g, w += kGroupWords * kPanelRows) {
      const uint32_t* x = p.packed.data + m * words + g * kXWords * C;
      uint32_t padded[kXWords * C];
      if (const int64_t left = words - g * kXWords; left < kXWords) {
        std::fill(std::copy_n(x, left * C, padded), padded + kXWords * C, 0u);
        x = padded;
      }
      for (int64_t row = 0; row < kPanelRows; row += kVectors<C> * hn::Lanes(I32()))
        AddGroup<C>(w + row, x, p.packed.sums + m * groups + g * C, p.packed.scales + m * groups + g * C,
                    totals + row, ahead);
    }
    for (int c = 0; c < C; ++c) {
      std::copy(totals + c * kPanelRows + slice.first, totals + c * kPanelRows + slice.last,
                p.y + (m + c) * p.w.rows + slice.row + slice.first);
    }
  });
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(Product4);

void MatMulInt4(const MatMul& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Product4)(p, first, last);
}

}  // namespace lattice::kernels
#endif
