// Matrix products with panels of bf16, int8 and int4 weights by AVX-512 intrinsics.
#include "kernels/dense/matmul_native.h"

#if defined(__x86_64__)
#include <algorithm>

#include "kernels/dense/product_panels.h"
#include "kernels/engine/fetch_ahead.h"
#include "kernels/isa.h"

#if !defined(__clang__)
// GCC 12 warns about its own _mm512_undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define LATTICE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prfchw")))
#define LATTICE_INLINE inline __attribute__((always_inline))

namespace lattice::kernels {
namespace {

// A panel is two vectors wide, so with the 8 rows of a tile of x there are 16 sums, one register each.
constexpr int kVectors = 2;
static_assert(kPanelRows == 16 * kVectors);

// Add multiplies a word of 16 rows of W with the same word of a row of x and adds to 16 sums. It is assembly
// because GCC 12 copies the sums back and forth around its own intrinsics.
struct Bf16 {
  using Sum = __m512;
  LATTICE_AVX512 static LATTICE_INLINE void Add(__m512i w, __m512i x, Sum& sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
  }
};
struct Int8 {
  using Sum = __m512i;
  LATTICE_AVX512 static LATTICE_INLINE void Add(__m512i w, __m512i x, Sum& sum) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
  }
};

// Stores vector v of a panel's sums, but only those rows that the slice has.
LATTICE_AVX512 LATTICE_INLINE void Store(const PanelSlice& slice, int v, __m512 sum, float* y) {
  const uint32_t wanted = static_cast<uint32_t>((uint64_t{1} << slice.last) - (uint64_t{1} << slice.first));
  _mm512_mask_storeu_ps(y + 16 * v, static_cast<__mmask16>(wanted >> (16 * v)), sum);
}

// Prefetches the cache lines of C rows of y that a tile will write. They are a whole row apart, a pattern
// that hardware does not prefetch.
template <int C>
LATTICE_AVX512 LATTICE_INLINE void FetchOutput(const MatMul& p, const PanelSlice& slice, int64_t m) {
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const float* y = p.y + (m + c) * p.w.rows + slice.row;
    __builtin_prefetch(y + slice.first, 1);
    __builtin_prefetch(y + (slice.first + slice.last) / 2, 1);
    __builtin_prefetch(y + slice.last - 1, 1);
  }
}

// The sums of a panel with C rows of x, held in registers; F is Bf16 or Int8.
template <class F, int C>
struct Sums {
  typename F::Sum values[C][kVectors];

  // Adds the products of words [0, words) of the panel at w and of the tile at x.
  LATTICE_AVX512 LATTICE_INLINE void Add(const char* w, const uint32_t* x, int64_t words, FetchAhead& ahead) {
    int64_t k = 0;
    for (; k + kAheadWords <= words; k += kAheadWords) {
      ahead.Step();
#pragma GCC unroll 4
      for (int64_t i = 0; i < kAheadWords; ++i) AddWord(w + 4 * kPanelRows * i, x + C * i);
      w += 4 * kPanelRows * kAheadWords;
      x += C * kAheadWords;
    }
    for (; k < words; ++k, w += 4 * kPanelRows, x += C) AddWord(w, x);
  }
  LATTICE_AVX512 LATTICE_INLINE void AddWord(const char* w, const uint32_t* x) {
    Multiply(_mm512_loadu_si512(w), _mm512_loadu_si512(w + 64), x);
  }
  // Adds the products of a word of both vectors of rows, `low` and `high`, with the words at x.
  LATTICE_AVX512 LATTICE_INLINE void Multiply(__m512i low, __m512i high, const uint32_t* x) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const __m512i word = _mm512_set1_epi32(static_cast<int32_t>(x[c]));
      F::Add(low, word, values[c][0]);
      F::Add(high, word, values[c][1]);
    }
  }
};

template <int C>
LATTICE_AVX512 void TileBf16(const MatMul& p, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
  const int64_t words = WordsOf(WeightFormat::kBf16, p.w.cols);
  FetchOutput<C>(p, slice, m);
  Sums<Bf16, C> sums;
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) sums.values[c][0] = sums.values[c][1] = _mm512_setzero_ps();
  sums.Add(slice.data, p.packed.data + m * words, words, ahead);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      Store(slice, v, sums.values[c][v], p.y + (m + c) * p.w.rows + slice.row);
  }
}

// Adds the products of one block of 64 columns to `totals`. Not inlined, because GCC would keep the totals in
// the registers that the integer sums need.
template <int C>
LATTICE_AVX512 __attribute__((noinline)) void AddBlock(const char* w, const uint32_t* x, int64_t words,
                                                       const int32_t* offsets, const float* scales,
                                                       float (*totals)[kVectors][16], FetchAhead& ahead) {
  Sums<Int8, C> sums;
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) sums.values[c][0] = sums.values[c][1] = _mm512_set1_epi32(offsets[c]);
  sums.Add(w, x, words, ahead);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const __m512 scale = _mm512_set1_ps(scales[c]);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const __m512 part = _mm512_mul_ps(_mm512_cvtepi32_ps(sums.values[c][v]), scale);
      _mm512_store_ps(totals[c][v], _mm512_add_ps(_mm512_load_ps(totals[c][v]), part));
    }
  }
}

template <int C>
LATTICE_AVX512 void TileInt8(const MatMul& p, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
  constexpr int64_t kWords = BlockColumns(WeightFormat::kInt8) / 4;
  const int64_t words = WordsOf(WeightFormat::kInt8, p.w.cols),
                blocks = BlocksOf(WeightFormat::kInt8, p.w.cols);
  FetchOutput<C>(p, slice, m);
  alignas(64) float totals[C][kVectors][16] = {};
  const char* w = slice.data;
  const uint32_t* x = p.packed.data + m * words;
  for (int64_t b = 0; b < blocks; ++b, w += 4 * kPanelRows * kWords, x += C * kWords) {
    AddBlock<C>(w, x, std::min(kWords, words - b * kWords), p.packed.offsets + m * blocks + b * C,
                p.packed.scales + m * blocks + b * C, totals, ahead);
  }
  for (int v = 0; v < kVectors; ++v) {
    const int64_t rows = std::clamp<int64_t>(p.w.rows - slice.row - 16 * v, 0, 16);
    const __m512 factors =
        _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << rows) - 1), p.w.scales + slice.row + 16 * v);
    for (int c = 0; c < C; ++c) {
      Store(slice, v, _mm512_mul_ps(_mm512_load_ps(totals[c][v]), factors),
            p.y + (m + c) * p.w.rows + slice.row);
    }
  }
}

// Adds the products of one group of int4 to `totals`. A word of W holds two words of columns in its low and its high four
// bits. Two roundings for each step, as on every other CPU: a fused multiply-add would give other bits.
template <int C>
LATTICE_AVX512 __attribute__((noinline)) void AddGroup(const char* w, const uint32_t* x, const float* x_sums,
                                                       const float* scales, float (*totals)[kVectors][16],
                                                       FetchAhead& ahead) {
  constexpr int kWords = kGroupBytes / 4 - 1;
  const __m512i low = _mm512_set1_epi8(15);
  Sums<Int8, C> sums;
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) sums.values[c][0] = sums.values[c][1] = _mm512_setzero_si512();
  ahead.Step();
#pragma GCC unroll 4
  for (int64_t k = 0; k < kWords; ++k) {
    const __m512i* at = reinterpret_cast<const __m512i*>(w + 4 * kPanelRows * (1 + k));
    const __m512i first = _mm512_loadu_si512(at), second = _mm512_loadu_si512(at + 1);
    sums.Multiply(_mm512_and_si512(first, low), _mm512_and_si512(second, low), x + 2 * k * C);
    sums.Multiply(_mm512_and_si512(_mm512_srli_epi16(first, 4), low),
                  _mm512_and_si512(_mm512_srli_epi16(second, 4), low), x + (2 * k + 1) * C);
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const __m512i grid = _mm512_loadu_si512(w + 64 * v);
    const __m512 factor = _mm512_castsi512_ps(_mm512_slli_epi32(grid, 16)),
                 offset = _mm512_castsi512_ps(_mm512_and_si512(grid, _mm512_set1_epi32(-65536)));
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums.values[c][v]), factor),
                   shifted = _mm512_mul_ps(_mm512_set1_ps(x_sums[c]), offset),
                   part = _mm512_mul_ps(_mm512_add_ps(scaled, shifted), _mm512_set1_ps(scales[c]));
      _mm512_store_ps(totals[c][v], _mm512_add_ps(_mm512_load_ps(totals[c][v]), part));
    }
  }
}

template <int C>
LATTICE_AVX512 void TileInt4(const MatMul& p, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
  constexpr int64_t kWords = kGroupColumns / 4;
  const int64_t words = WordsOf(WeightFormat::kInt8, p.w.cols), groups = GroupsOf(p.w.cols);
  FetchOutput<C>(p, slice, m);
  alignas(64) float totals[C][kVectors][16] = {};
  const char* w = slice.data;
  for (int64_t g = 0; g < groups; ++g, w += kPanelRows * kGroupBytes) {
    const uint32_t* x = p.packed.data + m * words + g * kWords * C;
    uint32_t padded[kWords * C];
    if (const int64_t left = words - g * kWords; left < kWords) {
      std::fill(std::copy_n(x, left * C, padded), padded + kWords * C, 0u);
      x = padded;
    }
    AddGroup<C>(w, x, p.packed.sums + m * groups + g * C, p.packed.scales + m * groups + g * C, totals,
                ahead);
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int c = 0; c < C; ++c)
      Store(slice, v, _mm512_load_ps(totals[c][v]), p.y + (m + c) * p.w.rows + slice.row);
  }
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void RoundRow(const float* x, int64_t cols,
                                                                              int64_t step, uint32_t* out) {
  for (int64_t k = 0; k < cols; k += 16) {
    const int64_t left = std::min<int64_t>(16, cols - k);
    const auto mask = static_cast<__mmask16>((1u << left) - 1);
    uint32_t words[8];
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + k));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), reinterpret_cast<__m256i>(rounded));
    if (left == 16) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < 8; ++i) out[i * step] = words[i];
      out += 8 * step;
    } else {
      for (int64_t i = 0; 2 * i < left; ++i) out[i * step] = words[i];
    }
  }
}

}  // namespace

bool HasNativeBf16() {
  static const bool cpu = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
  return cpu && UsesAvx512();
}

bool HasNativeInt8() {
  static const bool cpu = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  return cpu && UsesAvx512();
}

bool HasNativeInt4() { return HasNativeInt8(); }

void RoundRowsNative(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last) {
  const int64_t words = WordsOf(WeightFormat::kBf16, cols);
  for (int64_t m = first; m < last; ++m)
    RoundRow(x + m * cols, cols, out.Step(m), out.data + out.Index(m, words));
}

void MatMulBf16Native(const MatMul& p, int64_t first, int64_t last) {
  OverPanels(p, first, last, [&](auto c, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    TileBf16<c()>(p, slice, m, ahead);
  });
}

void MatMulInt8Native(const MatMul& p, int64_t first, int64_t last) {
  OverPanels(p, first, last, [&](auto c, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    TileInt8<c()>(p, slice, m, ahead);
  });
}

void MatMulInt4Native(const MatMul& p, int64_t first, int64_t last) {
  OverPanels(p, first, last, [&](auto c, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    TileInt4<c()>(p, slice, m, ahead);
  });
}

}  // namespace lattice::kernels

#endif  // __x86_64__
