// LayerNorm times a GELU gate, forward and backward: the layer between a memory and its output projection.
//   y = gelu(gate) (n w + b),   n = (x - mean) / sqrt(variance + eps) over a row
// with gelu(g) = g (1 + erf(g / sqrt 2)) / 2. Computed in float32; erf to 1.5e-7.
#ifndef LATTICE_KERNELS_DENSE_GATED_NORM_H_
#define LATTICE_KERNELS_DENSE_GATED_NORM_H_

#include <cstdint>

namespace lattice::kernels {

// S is float, or uint16_t for the bits of bfloat16.
template <typename S>
struct GatedNorm {
  int64_t rows = 0, width = 0;
  float eps = 0;
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  const float* x = nullptr;       // this and all that follows is [rows, width]
  const S* gate = nullptr;
  S* y = nullptr;  // forward

  // backward
  const S* dy = nullptr;
  float* dx = nullptr;
  S* dgate = nullptr;
  float* partial = nullptr;  // [Tiles, 2, width]: each tile's share of the gradients of weight and bias,
                             // which the caller adds in order

  // Work is handed out in tiles of rows; tile i is the same rows for any number of threads.
  static constexpr int64_t kTileRows = 64;
  int64_t Tiles() const { return (rows + kTileRows - 1) / kTileRows; }
};

// Tiles [first, last).
void GatedNormForward(const GatedNorm<float>& p, int64_t first, int64_t last);
void GatedNormForward(const GatedNorm<uint16_t>& p, int64_t first, int64_t last);
void GatedNormBackward(const GatedNorm<float>& p, int64_t first, int64_t last);
void GatedNormBackward(const GatedNorm<uint16_t>& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_GATED_NORM_H_
