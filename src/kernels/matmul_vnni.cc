#include "kernels/matmul_vnni.h"

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

#define LATTICE_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

namespace lattice::kernels {
namespace {

constexpr int64_t kStep = Int8Rows::kStep;
// Rows of x that share the loads of 4 rows of W.
constexpr int kColumns = 3;

struct Operands {
  const int8_t* w;
  int64_t cols;
  const int8_t* high;
  const int8_t* low;
  int64_t stride;
};

// Weights are the unsigned operand of vpdpbusd, so they get 128 added; the sum of x takes it out again.
LATTICE_VNNI inline __m512i Load(const int8_t* w, __mmask64 mask, __m512i offset) {
  return _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, w), offset);
}

LATTICE_VNNI inline __m512i AddPairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

// The sums of the lanes of four vectors.
LATTICE_VNNI inline __m128i Totals(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab = AddPairs(a, b), cd = AddPairs(c, d);
  const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// 128 high + low of a row of x, without the 128 that its weights were too large by.
LATTICE_VNNI inline __m256i Join(__m128i high, __m128i low, int64_t sum) {
  const __m256i both =
      _mm256_add_epi64(_mm256_slli_epi64(_mm256_cvtepi32_epi64(high), 7), _mm256_cvtepi32_epi64(low));
  return _mm256_sub_epi64(both, _mm256_set1_epi64x(128 * sum));
}

template <int R, int C>
LATTICE_VNNI inline __attribute__((always_inline)) void Add(const Operands& o, int64_t k, __mmask64 mask,
                                                            __m512i (&high)[R][C], __m512i (&low)[R][C]) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(0x80));
  __m512i w[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) w[r] = Load(o.w + r * o.cols + k, mask, offset);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const __m512i h = _mm512_loadu_si512(o.high + c * o.stride + k);
    const __m512i l = _mm512_loadu_si512(o.low + c * o.stride + k);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      high[r][c] = _mm512_dpbusd_epi32(high[r][c], w[r], h);
      low[r][c] = _mm512_dpbusd_epi32(low[r][c], w[r], l);
    }
  }
}

template <int R, int C>
struct Sums {
  __m512i high[R][C], low[R][C];
};

// Apart from the loop that makes the sums, which would otherwise not keep them in registers.
template <int R, int C>
LATTICE_VNNI __attribute__((noinline)) void Finish(const MatMul& p, int64_t row, int64_t m,
                                                   const Sums<R, C>& s) {
  for (int c = 0; c < C; ++c) {
    float* y = p.y + (m + c) * p.w.rows + row;
    const float scale = p.x8.scales[m + c];
    if constexpr (R == 4) {
      const __m128i high = Totals(s.high[0][c], s.high[1][c], s.high[2][c], s.high[3][c]);
      const __m128i low = Totals(s.low[0][c], s.low[1][c], s.low[2][c], s.low[3][c]);
      const __m128 sum = _mm256_cvtepi64_ps(Join(high, low, p.x8.sums[m + c]));
      _mm_storeu_ps(y, _mm_mul_ps(sum, _mm_mul_ps(_mm_set1_ps(scale), _mm_loadu_ps(p.w.scales + row))));
    } else {
      static_assert(R == 1);
      const __m128i high = Totals(s.high[0][c], s.high[0][c], s.high[0][c], s.high[0][c]);
      const __m128i low = Totals(s.low[0][c], s.low[0][c], s.low[0][c], s.low[0][c]);
      const __m128 sum = _mm256_cvtepi64_ps(Join(high, low, p.x8.sums[m + c]));
      *y = _mm_cvtss_f32(sum) * (scale * p.w.scales[row]);
    }
  }
}

// R rows of W with C rows of x, [row, row + R) and [m, m + C).
template <int R, int C>
LATTICE_VNNI void Tile(const MatMul& p, int64_t row, int64_t m, FetchAhead& ahead) {
  const int64_t cols = p.w.cols, stride = Int8Rows::Stride(cols);
  const Operands o = {static_cast<const int8_t*>(p.w.data) + row * cols, cols, p.x8.high + m * stride,
                      p.x8.low + m * stride, stride};
  __m512i high[R][C], low[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) high[r][c] = low[r][c] = _mm512_setzero_si512();
  }
  int64_t k = 0;
  for (; k + kStep <= cols; k += kStep) {
    Add<R, C>(o, k, ~__mmask64{0}, high, low);
    ahead.Step();
  }
  if (k < cols) Add<R, C>(o, k, (__mmask64{1} << (cols - k)) - 1, high, low);
  Sums<R, C> sums;
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sums.high[r][c] = high[r][c];
      sums.low[r][c] = low[r][c];
    }
  }
  Finish(p, row, m, sums);
}

template <int R>
LATTICE_VNNI void Rows(const MatMul& p, int64_t row, int64_t first, int64_t last) {
  const int64_t bytes = R * p.w.cols, tiles = (last - first + kColumns - 1) / kColumns;
  FetchAhead ahead(static_cast<const char*>(p.w.data) + row * p.w.cols + bytes, bytes,
                   std::max<int64_t>(1, p.w.cols / kStep) * tiles);
  int64_t m = first;
  for (; m + kColumns <= last; m += kColumns) Tile<R, kColumns>(p, row, m, ahead);
  if (last - m == 2) Tile<R, 2>(p, row, m, ahead);
  if (last - m == 1) Tile<R, 1>(p, row, m, ahead);
}

}  // namespace

bool HasVnni() {
  static const bool cpu = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  return cpu && CurrentIsa() == "avx512";
}

void MatMulVnni(const MatMul& p, int64_t first, int64_t last) {
  constexpr int64_t kCacheBytes = 256 << 10;
  OverProductBlocks(p.count, kCacheBytes / (2 * Int8Rows::Stride(p.w.cols)), kColumns, first, last,
                    [&](auto r, int64_t row, int64_t m, int64_t end) { Rows<r()>(p, row, m, end); });
}

}  // namespace lattice::kernels

#else

namespace lattice::kernels {

bool HasVnni() { return false; }
void MatMulVnni(const MatMul&, int64_t, int64_t) {}

}  // namespace lattice::kernels

#endif
