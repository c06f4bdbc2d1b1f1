// Products of rows of activations with a weight matrix, y = x W^T, for weights of three formats.
//
// Every element of y is summed over the columns in one order that depends on the instruction set only: not on
// how many rows of x there are, nor on which rows of W a thread computes. A token therefore gets the same
// bits alone, in a batch and in a prompt.
//
//   kF32          float32 products and sums.
//   kBf16         exact products, float32 sums. Where the CPU multiplies bf16, activations are rounded to it
//                 once (Bf16Rows); elsewhere the weight is widened and activations stay as they are.
//   kInt8         W[r,c] = scales[r] q[r,c]. Activations are rounded once to 15-bit integers, in two planes
//                 of 8 bits (Int8Rows), and the sum is exact.
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

// x[m,c] = scales[m] (128 high[m,c] + low[m,c]), both planes [rows, Stride(cols)] padded with zeros.
struct Int8Rows {
  int8_t* high = nullptr;
  int8_t* low = nullptr;
  float* scales = nullptr;
  int64_t* sums = nullptr;  // of 128 high + low over a row

  static constexpr int64_t kStep = 64;
  static constexpr int64_t Stride(int64_t cols) { return (cols + kStep - 1) / kStep * kStep; }
};

// Rounds rows [first, last) of x [*, cols]. A row with a value that is not finite gives NaN products.
void QuantizeRows(const float* x, int64_t cols, const Int8Rows& out, int64_t first, int64_t last);

// Activations rounded to bf16, [rows, Stride(cols)] padded with zeros.
struct Bf16Rows {
  uint16_t* data = nullptr;

  static constexpr int64_t kStep = 32;
  static constexpr int64_t Stride(int64_t cols) { return (cols + kStep - 1) / kStep * kStep; }
};

// Whether kBf16 takes x16 here, or x.
bool WantsBf16Rows();

// Rounds rows [first, last) of x [*, cols] to the nearest; only where WantsBf16Rows().
void RoundRows(const float* x, int64_t cols, const Bf16Rows& out, int64_t first, int64_t last);

struct MatMul {
  WeightMatrix w;
  int64_t count = 0;         // rows of x and y
  const float* x = nullptr;  // [count, cols], for kF32, and for kBf16 without WantsBf16Rows()
  Int8Rows x8 = {};          // for kInt8
  Bf16Rows x16 = {};         // for kBf16
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
