// Normalisation of rows: RMSNorm, and vectors brought to length 1.
//   y = x r w,  r = 1 / sqrt(share |x|^2 + eps);   RMSNorm: share = 1/C;  length 1: share = 1, no w
#ifndef LATTICE_KERNELS_ROW_NORM_H_
#define LATTICE_KERNELS_ROW_NORM_H_

#include <cstdint>

namespace lattice::kernels {

template <typename T>
struct RowNorm {
  int64_t rows = 0, width = 0;
  T share = 1, eps = 0;
  const T* x = nullptr;       // [rows, width]
  const T* weight = nullptr;  // [width] or null: ones

  // Work is handed out in tiles of rows; tile i is the same rows for any number of threads.
  static constexpr int64_t kTileRows = 64;
  int64_t Tiles() const { return (rows + kTileRows - 1) / kTileRows; }
};

// y of tiles [first, last).
void RowNormForward(const RowNorm<float>& norm, float* y, int64_t first, int64_t last);
void RowNormForward(const RowNorm<double>& norm, double* y, int64_t first, int64_t last);

// From dy: dx of tiles [first, last) and, where there is a weight, each tile's share of its gradient in
// partial [Tiles, width]; the caller adds the tiles in order.
void RowNormBackward(const RowNorm<float>& norm, const float* dy, float* dx, float* partial, int64_t first,
                     int64_t last);
void RowNormBackward(const RowNorm<double>& norm, const double* dy, double* dx, double* partial,
                     int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ROW_NORM_H_
