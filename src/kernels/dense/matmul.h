// Products of rows of activations with a weight matrix, y = x W^T, for weights of three formats.
//
// Every element of y is summed over the columns in one order that depends on the instruction set only: not on
// how many rows of x there are, nor on which rows of W a thread computes. A token therefore gets the same
// bits alone, in a batch and in a prompt.
//
//   kF32          float32 products and sums.
//   kBf16         exact products, float32 sums. Where the CPU multiplies bf16, activations are rounded to it
//                 once; elsewhere the weight is widened and activations stay as they are.
//   kInt8         W[r,c] = scales[r] q[r,c]. Activations are rounded once to 8-bit integers with a factor for
//                 every 64 columns of a row. Products and sums over those 64 are exact, then added in float32
//                 from the first to the last: the same bits on every instruction set.
#ifndef LATTICE_KERNELS_DENSE_MATMUL_H_
#define LATTICE_KERNELS_DENSE_MATMUL_H_

#include <cstdint>

#include "kernels/dense/panels.h"
#include "kernels/engine/fetch_ahead.h"

namespace lattice::kernels {

// [rows, cols]. kF32: row by row without gaps; no alignment is asked for. Others: panels.h. The memory is the
// caller's.
struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  int64_t rows = 0, cols = 0;
  const void* data = nullptr;
  const float* scales = nullptr;  // [rows], kInt8 only

  // Of the values and scales, without what fills up panels.
  int64_t Bytes() const { return rows * cols * WeightBytes(format) + (scales == nullptr ? 0 : 4 * rows); }
  // Of `data`.
  int64_t StoredBytes() const {
    return format == WeightFormat::kF32 ? 4 * rows * cols : PanelsOf(rows) * PanelBytes(format, cols);
  }
};

// Rows of activations as words of 4 bytes, 2 columns of bf16 or 4 of int8, zeros behind the last. kTile rows
// (the last tile has what is left) are interleaved as the rows of a panel are: word 0 of all, then word 1,
// and so on. What there is for every block of kBlock columns stands in the same order.
struct RowWords {
  int64_t count = 0;           // rows
  uint32_t* data = nullptr;    // [count, words]
  float* scales = nullptr;     // int8: [count, Blocks(cols)]; x[m,c] = scale of its block times its integer
  int32_t* offsets = nullptr;  // int8: as scales; -128 times the sum of a block, for panels are q + 128

  static constexpr int64_t kTile = 8, kBlock = 64;
  static constexpr int64_t Blocks(int64_t cols) { return (cols + kBlock - 1) / kBlock; }

  // From a word of row m to its next one.
  int64_t Step(int64_t m) const { return m / kTile < count / kTile ? kTile : count % kTile; }
  // The first of row m, if a row has `words`.
  int64_t Index(int64_t m, int64_t words) const { return m / kTile * kTile * words + m % kTile; }
};

// Rounds rows [first, last) of x [*, cols] to integers, at most 127. A block with a value that is not finite
// gives NaN products.
void QuantizeRows(const float* x, int64_t cols, const RowWords& out, int64_t first, int64_t last);

// Whether kBf16 takes words here, or x.
bool WantsBf16Rows();

// Rounds rows [first, last) of x [*, cols] to bf16, ties to even; only where WantsBf16Rows().
void RoundRows(const float* x, int64_t cols, const RowWords& out, int64_t first, int64_t last);

struct MatMul {
  WeightMatrix w;
  int64_t count = 0;         // rows of x and y
  const float* x = nullptr;  // [count, cols], for kF32, and for kBf16 without WantsBf16Rows()
  RowWords words = {};       // for kInt8, and for kBf16 with WantsBf16Rows()
  float* y = nullptr;        // [count, rows]
  // Fetched into the caches while each panel, or 4 rows of float32, is computed.
  FetchAhead::Beside beside = {};
};

// y[:, first..last): the share of rows [first, last) of W. Any thread may compute any share; those that begin
// and end with a panel take the least time.
void MatMulRows(const MatMul& p, int64_t first, int64_t last);

// One row of float32 weights as quantised and scale: q = round(w / scale), |q| <= 127.
void QuantizeWeights(const float* w, int64_t cols, int8_t* q, float* scale);
void RoundToBf16(const float* w, int64_t count, uint16_t* out);
void WidenBf16(const uint16_t* w, int64_t count, float* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_MATMUL_H_
