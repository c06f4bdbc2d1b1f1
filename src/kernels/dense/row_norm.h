// Normalisation of rows, forward and backward: RMSNorm, alone or fused with the addition to a residual
// stream, and normalisation to length 1.
//   s = x + delta;   y = s r w,  r = 1 / sqrt(share |s|^2 + eps)
// RMSNorm: share = 1/C;  length 1: share = 1, no w;  without delta s is x.
#ifndef LATTICE_KERNELS_DENSE_ROW_NORM_H_
#define LATTICE_KERNELS_DENSE_ROW_NORM_H_

#include <cstdint>

namespace lattice::kernels {

// A matrix that is stored in T, or (only if T is float) in the bits of bfloat16, or absent.
template <typename T, typename Bits = uint16_t>
struct Stored {
  T* wide = nullptr;
  Bits* bf16 = nullptr;
};
template <typename T>
using ConstStored = Stored<const T, const uint16_t>;

template <typename T>
struct RowNorm {
  int64_t rows = 0, width = 0;
  T share = 1, eps = 0;
  const T* weight = nullptr;  // [width] or null: ones

  // Work is handed out in tiles of rows; tile i is the same rows for any number of threads.
  static constexpr int64_t kTileRows = 64;
  int64_t Tiles() const { return (rows + kTileRows - 1) / kTileRows; }
};

template <typename T>
struct RowNormForward : RowNorm<T> {
  const T* x = nullptr;  // this and all that follows is [rows, width]
  ConstStored<T> delta;  // may be absent
  T* sum = nullptr;      // s; only with delta
  Stored<T> y;
};

template <typename T>
struct RowNormBackward : RowNorm<T> {
  const T* sum = nullptr;   // s
  const T* dsum = nullptr;  // the gradient of s from its other uses, or null
  ConstStored<T> dy;
  T* dx = nullptr;              // the gradient of s, which is that of x and of delta
  uint16_t* dx_bf16 = nullptr;  // the same rounded, or null
  T* partial = nullptr;  // [Tiles, width], where there is a weight: each tile's share of its gradient, which
                         // the caller adds in order
};

// Tiles [first, last).
void Run(const RowNormForward<float>& p, int64_t first, int64_t last);
void Run(const RowNormForward<double>& p, int64_t first, int64_t last);
void Run(const RowNormBackward<float>& p, int64_t first, int64_t last);
void Run(const RowNormBackward<double>& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_ROW_NORM_H_
