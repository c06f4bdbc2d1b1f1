// Products of rows of activations with a weight matrix, y = x W^T, for weights of three formats.
//
// Every element of y is summed over the columns in one order that depends on the instruction set only: not on
// how many rows of x there are, nor on which rows of W a thread computes. A token therefore gets the same
// bits alone, in a batch and in a prompt.
//
//   kF32          float32 products and sums.
//   kBf16         exact products, float32 sums. Where the CPU multiplies bf16, activations are rounded to it
//                 once; elsewhere the weight is widened and activations stay as they are.
//   kInt8         W[r,c] = scales[r] q[r,c]. Activations are rounded once to 15-bit integers with a factor
//   per
//                 row. Products and partial sums are exact; at most 16 of those are added in float32.
#ifndef LATTICE_KERNELS_MATMUL_H_
#define LATTICE_KERNELS_MATMUL_H_

#include <cstdint>

namespace lattice::kernels {

enum class WeightFormat { kF32, kBf16, kInt8 };

// [rows, cols], row by row without gaps; no alignment is asked for. The memory is the caller's.
struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  int64_t rows = 0, cols = 0;
  const void* data = nullptr;
  const float* scales = nullptr;  // [rows], kInt8 only

  int64_t Bytes() const;
};

// Activations in 16 bits, [rows, Stride(cols)] padded with zeros: bf16, or integers x[m,c] = scales[m]
// data[m,c].
struct Rows16 {
  int16_t* data = nullptr;
  float* scales = nullptr;  // [rows], of integers

  static constexpr int64_t kStep = 32;
  static constexpr int64_t Stride(int64_t cols) { return (cols + kStep - 1) / kStep * kStep; }
};

// Rounds rows [first, last) of x [*, cols] to integers, |data| <= 127 * 128. A row with a value that is not
// finite gives NaN products.
void QuantizeRows(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last);

// Whether kBf16 takes x16 here, or x.
bool WantsBf16Rows();

// Rounds rows [first, last) of x [*, cols] to bf16, ties to even; only where WantsBf16Rows().
void RoundRows(const float* x, int64_t cols, const Rows16& out, int64_t first, int64_t last);

struct MatMul {
  WeightMatrix w;
  int64_t count = 0;         // rows of x and y
  const float* x = nullptr;  // [count, cols], for kF32, and for kBf16 without WantsBf16Rows()
  Rows16 x16 = {};           // for kInt8, and for kBf16 with WantsBf16Rows()
  float* y = nullptr;        // [count, rows]
};

// y[:, first..last): the share of rows [first, last) of W. Any thread may compute any share.
void MatMulRows(const MatMul& p, int64_t first, int64_t last);

// One row of float32 weights as quantised and scale: q = round(w / scale), |q| <= 127.
void QuantizeWeights(const float* w, int64_t cols, int8_t* q, float* scale);
void RoundToBf16(const float* w, int64_t count, uint16_t* out);
void WidenBf16(const uint16_t* w, int64_t count, float* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MATMUL_H_
