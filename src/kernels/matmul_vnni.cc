#include "kernels/matmul_vnni.h"

#include <algorithm>

#include "kernels/isa.h"

#if defined(__x86_64__)
// GCC 12 warns about its own _mm512_undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define LATTICE_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

namespace lattice::kernels {
namespace {

constexpr int64_t kStep = Int8Rows::kStep;

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

LATTICE_VNNI inline __m256i Halve(__m512i x) {
  return _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
}

// 128 times the sum of the lanes of one plus that of the other.
LATTICE_VNNI inline int64_t Total(__m512i high, __m512i low) {
  const __m256i pairs = _mm256_hadd_epi32(Halve(high), Halve(low));
  const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  const __m128i sums = _mm_hadd_epi32(both, both);
  return 128 * int64_t{_mm_cvtsi128_si32(sums)} + _mm_extract_epi32(sums, 1);
}

template <int R, int C>
LATTICE_VNNI inline __attribute__((always_inline)) void Add(const Operands& o, int64_t k, __mmask64 mask,
                                                            __m512i (&high)[R][C], __m512i (&low)[R][C]) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(0x80));
  __m512i w[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    w[r] = Load(o.w + r * o.cols + k, mask, offset);
    if (C == 1) _mm_prefetch(reinterpret_cast<const char*>(o.w + (r + R) * o.cols + k), _MM_HINT_T0);
  }
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

// R rows of W with C rows of x, [row, row + R) and [m, m + C).
template <int R, int C>
LATTICE_VNNI void Tile(const MatMul& p, int64_t row, int64_t m) {
  const int64_t cols = p.w.cols, stride = Int8Rows::Stride(cols);
  const Operands o = {static_cast<const int8_t*>(p.w.data) + row * cols, cols, p.x8.high + m * stride,
                      p.x8.low + m * stride, stride};
  __m512i high[R][C], low[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) high[r][c] = low[r][c] = _mm512_setzero_si512();
  }
  int64_t k = 0;
  for (; k + kStep <= cols; k += kStep) Add<R, C>(o, k, ~__mmask64{0}, high, low);
  if (k < cols) Add<R, C>(o, k, (__mmask64{1} << (cols - k)) - 1, high, low);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const int64_t sum = Total(high[r][c], low[r][c]) - 128 * p.x8.sums[m + c];
      p.y[(m + c) * p.w.rows + row + r] =
          static_cast<float>(sum) * (p.x8.scales[m + c] * p.w.scales[row + r]);
    }
  }
}

template <int R>
LATTICE_VNNI void Rows(const MatMul& p, int64_t row, int64_t first, int64_t last) {
  int64_t m = first;
  for (; m + 3 <= last; m += 3) Tile<R, 3>(p, row, m);
  if (last - m == 2) Tile<R, 2>(p, row, m);
  if (last - m == 1) Tile<R, 1>(p, row, m);
}

}  // namespace

bool HasVnni() {
  static const bool cpu = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  return cpu && CurrentIsa() == "avx512";
}

void MatMulVnni(const MatMul& p, int64_t first, int64_t last) {
  // Rows of x that stay in the L2 cache while the rows of W go by.
  constexpr int64_t kCacheBytes = 256 << 10;
  const int64_t block = std::max<int64_t>(3, kCacheBytes / (2 * Int8Rows::Stride(p.w.cols)) / 3 * 3);
  for (int64_t m = 0; m < p.count; m += block) {
    const int64_t end = std::min(p.count, m + block);
    int64_t row = first;
    // One row of x is bound by memory, which is read fastest as one stream.
    for (; p.count > 1 && row + 4 <= last; row += 4) Rows<4>(p, row, m, end);
    for (; row < last; ++row) Rows<1>(p, row, m, end);
  }
}

}  // namespace lattice::kernels

#else

namespace lattice::kernels {

bool HasVnni() { return false; }
void MatMulVnni(const MatMul&, int64_t, int64_t) {}

}  // namespace lattice::kernels

#endif
