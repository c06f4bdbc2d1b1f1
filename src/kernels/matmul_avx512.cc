#include "kernels/matmul_avx512.h"

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

#define LATTICE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define LATTICE_INLINE inline __attribute__((always_inline))

namespace lattice::kernels {
namespace {

// Rows of x that share the loads of 4 rows of W: 24 sums and what they are made of fill the registers.
constexpr int kColumns = 6;
constexpr int64_t kStep = Rows16::kStep;

// Both formats multiply 32 weights with 32 activations of 16 bits in one instruction that adds the products,
// two by two, to the lanes of a sum. It is written as assembly because GCC 12 copies the sum around its own
// form of it.
struct Bf16 {
  using Weight = uint16_t;
  using Sum = __m512;

  LATTICE_AVX512 static LATTICE_INLINE Sum Zero() { return _mm512_setzero_ps(); }
  LATTICE_AVX512 static LATTICE_INLINE __m512i Load(const Weight* w, __mmask32 mask) {
    return _mm512_maskz_loadu_epi16(mask, w);
  }
  LATTICE_AVX512 static LATTICE_INLINE Sum Add(__m512i w, __m512i x, Sum sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
  }
  LATTICE_AVX512 static LATTICE_INLINE __m512 Float(Sum sum) { return sum; }
  LATTICE_AVX512 static LATTICE_INLINE void Store(__m128 total, const MatMul&, int64_t, int64_t,
                                                  __mmask8 mask, float* y) {
    _mm_mask_storeu_ps(y, mask, total);
  }
};

struct Int8 {
  using Weight = int8_t;
  using Sum = __m512i;

  LATTICE_AVX512 static LATTICE_INLINE Sum Zero() { return _mm512_setzero_si512(); }
  LATTICE_AVX512 static LATTICE_INLINE __m512i Load(const Weight* w, __mmask32 mask) {
    return _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, w));
  }
  LATTICE_AVX512 static LATTICE_INLINE Sum Add(__m512i w, __m512i x, Sum sum) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
  }
  LATTICE_AVX512 static LATTICE_INLINE __m512 Float(Sum sum) { return _mm512_cvtepi32_ps(sum); }
  LATTICE_AVX512 static LATTICE_INLINE void Store(__m128 total, const MatMul& p, int64_t row, int64_t m,
                                                  __mmask8 mask, float* y) {
    const __m128 scales = _mm_maskz_loadu_ps(mask, p.w.scales + row);
    _mm_mask_storeu_ps(y, mask, _mm_mul_ps(total, _mm_mul_ps(_mm_set1_ps(p.x16.scales[m]), scales)));
  }
};

// Lanes (a, b, a, b) with what their pairs add up to; of such, (a, b, c, d).
LATTICE_AVX512 LATTICE_INLINE __m512 AddPairs(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
LATTICE_AVX512 LATTICE_INLINE __m512 AddPairsOfPairs(__m512 ab, __m512 cd) {
  const __m512d x = _mm512_castps_pd(ab), y = _mm512_castps_pd(cd);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

// The sums of the lanes of four vectors. Each is added in the same order as the others.
LATTICE_AVX512 LATTICE_INLINE __m128 Totals(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 all = AddPairsOfPairs(AddPairs(a, b), AddPairs(c, d));
  const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(all), 1));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), upper);
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

template <class F, int R, int C>
LATTICE_AVX512 LATTICE_INLINE void Add(const typename F::Weight* w, int64_t cols, const int16_t* x,
                                       int64_t stride, __mmask32 mask, typename F::Sum (&sum)[R][C]) {
  __m512i row[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) row[r] = F::Load(w + r * cols, mask);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const __m512i column = _mm512_loadu_si512(x + c * stride);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r][c] = F::Add(row[r], column, sum[r][c]);
  }
}

// R rows of W with C rows of x, [row, row + R) and [m, m + C).
template <class F, int R, int C>
LATTICE_AVX512 void Tile(const MatMul& p, int64_t row, int64_t m, FetchAhead& ahead) {
  static_assert(R == 4 || R == 1);
  const int64_t cols = p.w.cols, stride = Rows16::Stride(cols);
  const auto* w = static_cast<const typename F::Weight*>(p.w.data) + row * cols;
  const int16_t* x = p.x16.data + m * stride;
  typename F::Sum sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sum[r][c] = F::Zero();
  }
  int64_t k = 0;
  for (; k + kStep <= cols; k += kStep) {
    Add<F, R, C>(w + k, cols, x + k, stride, ~__mmask32{0}, sum);
    if constexpr (R > 1) ahead.Step();
  }
  if (k < cols) Add<F, R, C>(w + k, cols, x + k, stride, (__mmask32{1} << (cols - k)) - 1, sum);
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const __m128 total = Totals(F::Float(sum[0][c]), F::Float(sum[1 % R][c]), F::Float(sum[2 % R][c]),
                                F::Float(sum[3 % R][c]));
    F::Store(total, p, row, m + c, (1 << R) - 1, p.y + (m + c) * p.w.rows + row);
  }
}

template <class F, int R, int C>
LATTICE_AVX512 LATTICE_INLINE void LastColumns(const MatMul& p, int64_t row, int64_t m, int64_t left,
                                               FetchAhead& ahead) {
  if constexpr (C > 0) {
    if (left == C) return Tile<F, R, C>(p, row, m, ahead);
    LastColumns<F, R, C - 1>(p, row, m, left, ahead);
  }
}

template <class F, int R>
LATTICE_AVX512 void Rows(const MatMul& p, int64_t row, int64_t first, int64_t last) {
  const int64_t bytes = R * p.w.cols * static_cast<int64_t>(sizeof(typename F::Weight));
  const int64_t tiles = (last - first + kColumns - 1) / kColumns;
  FetchAhead ahead(static_cast<const typename F::Weight*>(p.w.data) + row * p.w.cols, bytes,
                   std::max<int64_t>(1, p.w.cols / kStep) * tiles);
  int64_t m = first;
  for (; m + kColumns <= last; m += kColumns) Tile<F, R, kColumns>(p, row, m, ahead);
  LastColumns<F, R, kColumns - 1>(p, row, m, last - m, ahead);
}

template <class F>
void Product(const MatMul& p, int64_t first, int64_t last) {
  constexpr int64_t kCacheBytes = 384 << 10;
  OverProductBlocks(p.count, kCacheBytes / (2 * Rows16::Stride(p.w.cols)), kColumns, first, last,
                    [&](auto r, int64_t row, int64_t m, int64_t end) { Rows<F, r()>(p, row, m, end); });
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void RoundRow(const float* x, int64_t cols,
                                                                              int16_t* out) {
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

bool HasVnni() {
  static const bool cpu = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  return cpu && CurrentIsa() == "avx512";
}

void RoundRowsBf16(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last) {
  const int64_t stride = Rows16::Stride(cols);
  for (int64_t m = first; m < last; ++m) {
    std::fill(out.data + m * stride + cols, out.data + (m + 1) * stride, int16_t{0});
    RoundRow(x + m * cols, cols, out.data + m * stride);
  }
}

void MatMulBf16(const MatMul& p, int64_t first, int64_t last) { Product<Bf16>(p, first, last); }
void MatMulVnni(const MatMul& p, int64_t first, int64_t last) { Product<Int8>(p, first, last); }

}  // namespace lattice::kernels

#else

namespace lattice::kernels {

bool HasBf16() { return false; }
bool HasVnni() { return false; }
void RoundRowsBf16(const float*, int64_t, const Rows16&, int64_t, int64_t) {}
void MatMulBf16(const MatMul&, int64_t, int64_t) {}
void MatMulVnni(const MatMul&, int64_t, int64_t) {}

}  // namespace lattice::kernels

#endif
