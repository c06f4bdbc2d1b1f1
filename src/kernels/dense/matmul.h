// Matrix products of rows of activations with a weight matrix, y = x W^T, for weights of four formats.
//
// Every element of y is summed over the columns in one order that depends on the instruction set only: not on
// how many rows of x there are, nor on which rows of W a thread computes. A token therefore gets the same
// bits alone, in a batch and in a prompt.
//
//   kF32    float32 products and sums.
//   kBf16   exact products, float32 sums. Where the CPU multiplies bf16, activations are rounded to it once;
//           elsewhere weights are widened to float32 and activations stay as they are.
//   kInt8   W[r,c] = scales[r] q[r,c]. Activations are quantised once to 8-bit integers, with one scale for
//           every 64 columns of a row. Products and sums over those 64 are exact; the sums of the blocks are
//           added in float32 from the first to the last, with the same bits on every instruction set.
//   kInt4   W[r,c] = f q[r,c] + o, with a factor f and an offset o for every 32 columns of a row. Activations are
//           those of kInt8 with a scale for every 32 columns, so a group meets one block: its sum is
//           (f sum(q a) + o sum(a)) times the block's scale, where both sums are exact integers and each
//           operation rounds once, on every instruction set.
#ifndef LATTICE_KERNELS_DENSE_MATMUL_H_
#define LATTICE_KERNELS_DENSE_MATMUL_H_

#include <cstdint>

#include "kernels/dense/panels.h"
#include "kernels/engine/fetch_ahead.h"

namespace lattice::kernels {

// A weight matrix [rows, cols] in the caller's memory. kF32: row by row without gaps, of any alignment. The
// other formats: panels (panels.h).
struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  int64_t rows = 0, cols = 0;
  const void* data = nullptr;
  const float* scales = nullptr;  // [rows], kInt8 only

  // Bytes of the values and scales, without the padding of panels.
  int64_t Bytes() const { return rows * RowBytes(format, cols) + (scales == nullptr ? 0 : 4 * rows); }
  // Bytes of `data`, with the padding of panels.
  int64_t StoredBytes() const {
    return format == WeightFormat::kF32 ? 4 * rows * cols : PanelsOf(rows) * PanelBytes(format, cols);
  }
};

// The format of the activations that products with weights of `format` take.
constexpr WeightFormat ActivationFormat(WeightFormat format) {
  return format == WeightFormat::kInt4 ? WeightFormat::kInt8 : format;
}

// The columns of a row of activations that have a scale in common, in products with weights of an integer format.
constexpr int64_t BlockColumns(WeightFormat format) {
  return format == WeightFormat::kInt4 ? kGroupColumns : 64;
}
constexpr int64_t BlocksOf(WeightFormat format, int64_t cols) {
  return (cols + BlockColumns(format) - 1) / BlockColumns(format);
}

// Rows of activations, packed for products with panels: bf16, or int8 for both formats of integers. A row is a sequence
// of 4-byte words, 2 columns of bf16 or 4 of int8, padded with zeros. The rows of a tile (kTile rows; the last tile has
// what is left) are interleaved like those of a panel: word 0 of all rows, then word 1, and so on. Scales and offsets,
// one for every block of columns, are interleaved in the same way.
struct PackedRows {
  int64_t count = 0;         // rows
  uint32_t* data = nullptr;  // [count, words]
  // int8: [count, BlocksOf(weights, cols)]; x[m,c] is its integer times the scale of its block.
  float* scales = nullptr;
  // Like scales, for weights of int8: -128 times the sum of the integers of a block, because panels hold q + 128.
  int32_t* offsets = nullptr;
  // Like scales, for weights of int4: the sum of the integers of a block, which float32 holds exactly.
  float* sums = nullptr;
  WeightFormat weights = WeightFormat::kInt8;  // the format that they are multiplied with

  static constexpr int64_t kTile = 8;

  // The distance from a word of row m to the next one of that row.
  int64_t Step(int64_t m) const { return m / kTile < count / kTile ? kTile : count % kTile; }
  // The index of the first word of row m, if a row has `words` words.
  int64_t Index(int64_t m, int64_t words) const { return m / kTile * kTile * words + m % kTile; }
};

// Quantises rows [first, last) of x [*, cols] to integers of size at most 127. A block with a value that is
// not finite gets a NaN scale, and so NaN products.
void QuantizeRows(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last);

// Whether products of kBf16 take packed rows on this CPU; otherwise they take x.
bool WantsBf16Rows();

// Rounds rows [first, last) of x [*, cols] to bf16, ties to even; only where WantsBf16Rows().
void RoundRows(const float* x, int64_t cols, const PackedRows& out, int64_t first, int64_t last);

struct MatMul {
  WeightMatrix w;
  int64_t count = 0;         // rows of x and y
  const float* x = nullptr;  // [count, cols], for kF32, and for kBf16 without WantsBf16Rows()
  PackedRows packed = {};    // for kInt8 and kInt4, and for kBf16 with WantsBf16Rows()
  float* y = nullptr;        // [count, rows]
  // Other memory to prefetch while each panel, or each 4 rows of float32, is computed.
  FetchAhead::Region also_prefetch = {};
};

// Computes y[:, first..last), the product with rows [first, last) of W. Any thread may compute any range;
// ranges of whole panels are fastest.
void MatMulRows(const MatMul& p, int64_t first, int64_t last);

// Quantises one row of float32 weights: q = round(w / scale), |q| <= 127.
void QuantizeWeights(const float* w, int64_t cols, int8_t* q, float* scale);
void RoundToBf16(const float* w, int64_t count, uint16_t* out);
void WidenBf16(const uint16_t* w, int64_t count, float* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_MATMUL_H_
