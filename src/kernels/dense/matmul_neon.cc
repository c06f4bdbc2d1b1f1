// Matrix products with panels of bf16 and int8 weights by the dot products of 64-bit ARM: BFDOT for bf16; for int8 USDOT,
// or SDOT where the CPU has no product of unsigned with signed bytes.
#include "kernels/dense/matmul_native.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <vector>

#include "kernels/dense/product_panels.h"
#include "kernels/engine/fetch_ahead.h"
#include "kernels/isa_level.h"

// Clang's assembler accepts an instruction where the function has its extension, GNU's after a directive.
#if defined(__clang__)
#define LATTICE_DOT __attribute__((target("dotprod,i8mm,bf16")))
#define LATTICE_ASSEMBLER
#else
#define LATTICE_DOT
#define LATTICE_ASSEMBLER ".arch armv8.6-a\n\t"
#endif
#define LATTICE_INLINE inline __attribute__((always_inline))

namespace lattice::kernels {
namespace {

// A vector holds a word of 4 rows of W.
constexpr int kLanes = 4;

// How many vectors of a panel are multiplied with C rows of x at a time: 16 sums, or 14 and 12, in 32 registers.
template <int C>
constexpr int kVectors = C <= 2   ? 8
                         : C <= 4 ? 4
                                  : 2;

// A form multiplies a word of 4 rows of W with the same word of a row of x and adds to 4 sums. The instructions are
// assembly, because a compiler offers them as functions only to code that is compiled for CPUs that have them.
struct Bfdot {
  using Sum = float32x4_t;
  LATTICE_DOT static LATTICE_INLINE uint32x4_t Prepare(uint32x4_t w) { return w; }
  LATTICE_DOT static LATTICE_INLINE void Add(uint32x4_t w, uint32x4_t x, Sum& sum) {
    asm(LATTICE_ASSEMBLER "bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(w), "w"(x));
  }
};
struct Usdot {
  using Sum = int32x4_t;
  LATTICE_DOT static LATTICE_INLINE Sum Start(int32_t offset) { return vdupq_n_s32(offset); }
  LATTICE_DOT static LATTICE_INLINE uint32x4_t Prepare(uint32x4_t w) { return w; }
  LATTICE_DOT static LATTICE_INLINE void Add(uint32x4_t w, uint32x4_t x, Sum& sum) {
    asm(LATTICE_ASSEMBLER "usdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(w), "w"(x));
  }
};
// Turns q + 128 back into q, so that no offset is to be added.
struct Sdot {
  using Sum = int32x4_t;
  LATTICE_DOT static LATTICE_INLINE Sum Start(int32_t) { return vdupq_n_s32(0); }
  LATTICE_DOT static LATTICE_INLINE uint32x4_t Prepare(uint32x4_t w) {
    return veorq_u32(w, vdupq_n_u32(0x80808080u));
  }
  LATTICE_DOT static LATTICE_INLINE void Add(uint32x4_t w, uint32x4_t x, Sum& sum) {
    asm(LATTICE_ASSEMBLER "sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(w), "w"(x));
  }
};

// Adds the products of words [0, words) of V vectors of a panel at w with C rows of x to the sums.
template <class Form, int C, int V>
LATTICE_DOT LATTICE_INLINE void AddWords(const uint32_t* w, const uint32_t* x, int64_t words,
                                         typename Form::Sum (&sums)[C][V], FetchAhead& ahead) {
  for (int64_t k = 0; k < words; ++k, w += kPanelRows, x += C) {
    if (k % kAheadWords == 0) ahead.Step();
    uint32x4_t rows[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) rows[v] = Form::Prepare(vld1q_u32(w + v * kLanes));
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const uint32x4_t word = vdupq_n_u32(x[c]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) Form::Add(rows[v], word, sums[c][v]);
    }
  }
}

// Stores those of a panel's rows of results [C][kPanelRows] that the slice has.
template <int C>
void Store(const MatMul& p, const PanelSlice& slice, int64_t m, const float* results) {
  for (int c = 0; c < C; ++c) {
    std::copy(results + c * kPanelRows + slice.first, results + c * kPanelRows + slice.last,
              p.y + (m + c) * p.w.rows + slice.row + slice.first);
  }
}

template <int C>
LATTICE_DOT void TileBf16(const MatMul& p, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
  constexpr int V = kVectors<C>;
  const int64_t words = WordsOf(WeightFormat::kBf16, p.w.cols);
  const auto* panel = reinterpret_cast<const uint32_t*>(slice.data);
  float results[C * kPanelRows];
  for (int64_t row = 0; row < kPanelRows; row += V * kLanes) {
    float32x4_t sums[C][V];
    for (auto& of_row : sums) std::fill_n(of_row, V, vdupq_n_f32(0));
    AddWords<Bfdot, C, V>(panel + row, p.packed.data + m * words, words, sums, ahead);
    for (int c = 0; c < C; ++c) {
      for (int v = 0; v < V; ++v) vst1q_f32(results + c * kPanelRows + row + v * kLanes, sums[c][v]);
    }
  }
  Store<C>(p, slice, m, results);
}

// Adds the products of one block of 64 columns to totals [C][kPanelRows].
template <class Form, int C>
LATTICE_DOT void AddBlock(const uint32_t* w, const uint32_t* x, int64_t words, const int32_t* offsets,
                          const float* scales, float* totals, FetchAhead& ahead) {
  constexpr int V = kVectors<C>;
  int32x4_t sums[C][V];
  for (int c = 0; c < C; ++c) std::fill_n(sums[c], V, Form::Start(offsets[c]));
  AddWords<Form, C, V>(w, x, words, sums, ahead);
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < V; ++v) {
      float* total = totals + c * kPanelRows + v * kLanes;
      // Two roundings, as on every other CPU: a fused multiply-add would give other bits.
      const float32x4_t part = vmulq_n_f32(vcvtq_f32_s32(sums[c][v]), scales[c]);
      vst1q_f32(total, vaddq_f32(vld1q_f32(total), part));
    }
  }
}

template <class Form, int C>
LATTICE_DOT void TileInt8(const MatMul& p, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
  constexpr int64_t kWords = BlockColumns(WeightFormat::kInt8) / 4;
  const int64_t words = WordsOf(WeightFormat::kInt8, p.w.cols),
                blocks = BlocksOf(WeightFormat::kInt8, p.w.cols);
  const auto* panel = reinterpret_cast<const uint32_t*>(slice.data);
  float totals[C * kPanelRows] = {};
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t row = 0; row < kPanelRows; row += kVectors<C> * kLanes) {
      AddBlock<Form, C>(panel + b * kWords * kPanelRows + row, p.packed.data + m * words + b * kWords * C,
                        std::min(kWords, words - b * kWords), p.packed.offsets + m * blocks + b * C,
                        p.packed.scales + m * blocks + b * C, totals + row, ahead);
    }
  }
  for (int c = 0; c < C; ++c) {
    for (int64_t row = slice.first; row < slice.last; ++row)
      totals[c * kPanelRows + row] *= p.w.scales[slice.row + row];
  }
  Store<C>(p, slice, m, totals);
}

template <class Form>
void Int8(const MatMul& p, int64_t first, int64_t last) {
  OverPanels(p, first, last, [&](auto c, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    TileInt8<Form, c()>(p, slice, m, ahead);
  });
}

}  // namespace

bool HasNativeBf16() { return CurrentLevel() >= IsaLevel::kNeonBf16; }
bool HasNativeInt8() { return CurrentLevel() >= IsaLevel::kNeonDot; }
bool HasNativeInt4() { return false; }

void RoundRowsNative(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last) {
  const int64_t words = WordsOf(WeightFormat::kBf16, cols);
  std::vector<uint16_t> rounded(2 * words);  // an odd number of columns is padded with a zero
  for (int64_t m = first; m < last; ++m) {
    RoundToBf16(x + m * cols, cols, rounded.data());
    uint32_t* to = out.data + out.Index(m, words);
    for (int64_t k = 0; k < words; ++k, to += out.Step(m))
      *to = rounded[2 * k] | uint32_t{rounded[2 * k + 1]} << 16;
  }
}

void MatMulBf16Native(const MatMul& p, int64_t first, int64_t last) {
  OverPanels(p, first, last, [&](auto c, const PanelSlice& slice, int64_t m, FetchAhead& ahead) {
    TileBf16<c()>(p, slice, m, ahead);
  });
}

void MatMulInt8Native(const MatMul& p, int64_t first, int64_t last) {
  if (CurrentLevel() >= IsaLevel::kNeonBf16) return Int8<Usdot>(p, first, last);
  Int8<Sdot>(p, first, last);
}

void MatMulInt4Native(const MatMul&, int64_t, int64_t) {}

}  // namespace lattice::kernels

#endif  // __aarch64__
