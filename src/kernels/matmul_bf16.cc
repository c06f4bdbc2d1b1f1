#include "kernels/matmul_bf16.h"

#include <algorithm>

#include "kernels/fetch_ahead.h"
#include "kernels/isa.h"
#include "kernels/product_blocks.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// GCC 12 warns about its own _mm512_undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define LATTICE_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define LATTICE_INLINE inline __attribute__((always_inline))

namespace lattice::kernels {
namespace {

constexpr int64_t kStep = Bf16Rows::kStep;
// Rows of x that share the loads of 4 rows of W: 24 sums and what they are made of fill the registers.
constexpr int kColumns = 6;

LATTICE_BF16 LATTICE_INLINE __m512bh Bits(__m512i x) { return reinterpret_cast<__m512bh>(x); }

// Lanes (a, b, a, b) with what their pairs add up to; of such, (a, b, c, d).
LATTICE_BF16 LATTICE_INLINE __m512 AddPairs(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
LATTICE_BF16 LATTICE_INLINE __m512 AddPairsOfPairs(__m512 ab, __m512 cd) {
  const __m512d x = _mm512_castps_pd(ab), y = _mm512_castps_pd(cd);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

// The sums of the lanes of four vectors. Each is added in the same order as the others.
LATTICE_BF16 LATTICE_INLINE __m128 Totals(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 all = AddPairsOfPairs(AddPairs(a, b), AddPairs(c, d));
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), upper);
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

template <int R, int C>
LATTICE_BF16 LATTICE_INLINE void Add(const uint16_t* w, int64_t cols, const uint16_t* x, int64_t stride,
                                     __mmask32 mask, __m512 (&sum)[R][C]) {
  __m512bh row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) row[r] = Bits(_mm512_maskz_loadu_epi16(mask, w + r * cols));
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const __m512bh column = Bits(_mm512_loadu_si512(x + c * stride));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], row[r], column);
  }
}

// R rows of W with C rows of x, [row, row + R) and [m, m + C).
template <int R, int C>
LATTICE_BF16 void Tile(const MatMul& p, int64_t row, int64_t m, FetchAhead& ahead) {
  const int64_t cols = p.w.cols, stride = Bf16Rows::Stride(cols);
  const uint16_t* w = static_cast<const uint16_t*>(p.w.data) + row * cols;
  const uint16_t* x = p.x16.data + m * stride;
  __m512 sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c] = _mm512_setzero_ps();
  }
  int64_t k = 0;
  for (; k + kStep <= cols; k += kStep) {
    Add<R, C>(w + k, cols, x + k, stride, ~__mmask32{0}, sum);
    ahead.Step();
  }
  if (k < cols) Add<R, C>(w + k, cols, x + k, stride, (__mmask32{1} << (cols - k)) - 1, sum);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    float* y = p.y + (m + c) * p.w.rows + row;
    if constexpr (R == 4) {
      _mm_storeu_ps(y, Totals(sum[0][c], sum[1][c], sum[2][c], sum[3][c]));
    } else {
      static_assert(R == 1);
      *y = _mm_cvtss_f32(Totals(sum[0][c], sum[0][c], sum[0][c], sum[0][c]));
    }
  }
}

template <int R, int C>
LATTICE_BF16 LATTICE_INLINE void LastColumns(const MatMul& p, int64_t row, int64_t m, int64_t left,
                                             FetchAhead& ahead) {
  if constexpr (C > 0) {
    if (left == C) return Tile<R, C>(p, row, m, ahead);
    LastColumns<R, C - 1>(p, row, m, left, ahead);
  }
}

template <int R>
LATTICE_BF16 void Rows(const MatMul& p, int64_t row, int64_t first, int64_t last) {
  const int64_t bytes = R * p.w.cols * 2, tiles = (last - first + kColumns - 1) / kColumns;
  FetchAhead ahead(static_cast<const char*>(p.w.data) + row * p.w.cols * 2 + bytes, bytes,
                   std::max<int64_t>(1, p.w.cols / kStep) * tiles);
  int64_t m = first;
  for (; m + kColumns <= last; m += kColumns) Tile<R, kColumns>(p, row, m, ahead);
  LastColumns<R, kColumns - 1>(p, row, m, last - m, ahead);
}

LATTICE_BF16 void RoundRow(const float* x, int64_t cols, uint16_t* out) {
  for (int64_t k = 0; k < cols; k += 16) {
    const int64_t left = cols - k;
    const __mmask16 mask = left >= 16 ? 0xffff : static_cast<__mmask16>((1 << left) - 1);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + k));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + k), reinterpret_cast<__m256i>(rounded));
  }
}

}  // namespace

bool HasBf16() {
  static const bool cpu = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
  return cpu && CurrentIsa() == "avx512";
}

void RoundRowsBf16(const float* x, int64_t cols, const Bf16Rows& out, int64_t first, int64_t last) {
  const int64_t stride = Bf16Rows::Stride(cols);
  for (int64_t m = first; m < last; ++m) {
    std::fill(out.data + m * stride + cols, out.data + (m + 1) * stride, uint16_t{0});
    RoundRow(x + m * cols, cols, out.data + m * stride);
  }
}

void MatMulBf16(const MatMul& p, int64_t first, int64_t last) {
  constexpr int64_t kCacheBytes = 384 << 10;
  OverProductBlocks(p.count, kCacheBytes / (2 * Bf16Rows::Stride(p.w.cols)), kColumns, first, last,
                    [&](auto r, int64_t row, int64_t m, int64_t end) { Rows<r()>(p, row, m, end); });
}

}  // namespace lattice::kernels

#else

namespace lattice::kernels {

bool HasBf16() { return false; }
void RoundRowsBf16(const float*, int64_t, const Bf16Rows&, int64_t, int64_t) {}
void MatMulBf16(const MatMul&, int64_t, int64_t) {}

}  // namespace lattice::kernels

#endif
