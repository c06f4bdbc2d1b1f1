// Depthwise causal convolution over time, forward and backward: the short convolutions of the models.
//   y[b,t,c] = bias[c] + sum_j weight[j,c] x[b, t-W+1+j, c],   j = W-1 being the newest token
// Inputs before the first token come from `past`, or are zero. Everything is contiguous.
#ifndef LATTICE_KERNELS_DENSE_SHORT_CONV_H_
#define LATTICE_KERNELS_DENSE_SHORT_CONV_H_

#include <cstdint>

namespace lattice::kernels {

template <typename T>
struct ShortConv {
  int64_t batch = 0, time = 0, channels = 0, width = 0;
  const T* weight = nullptr;  // [W,C]
  const T* bias = nullptr;    // [C]
  const T* x = nullptr;       // [B,T,C]
  const T* past = nullptr;    // [B,W-1,C], oldest first, or null

  // Work is handed out in tiles of rows (b, t); tile i of Tiles() is the same rows for any number of threads.
  static constexpr int64_t kTileRows = 64;
  int64_t TilesPerSequence() const { return (time + kTileRows - 1) / kTileRows; }
  int64_t Tiles() const { return batch * TilesPerSequence(); }
};

// y of tiles [first, last).
void ShortConvForward(const ShortConv<float>& conv, float* y, int64_t first, int64_t last);
void ShortConvForward(const ShortConv<double>& conv, double* y, int64_t first, int64_t last);

// From dy [B,T,C]: dx of tiles [first, last), and in partial [Tiles, W+1, C] each tile's share of the
// gradients of the weights (rows 0..W-1) and of the bias (row W). The caller adds the tiles in order. No
// gradient for `past`.
void ShortConvBackward(const ShortConv<float>& conv, const float* dy, float* dx, float* partial,
                       int64_t first, int64_t last);
void ShortConvBackward(const ShortConv<double>& conv, const double* dy, double* dx, double* partial,
                       int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_SHORT_CONV_H_
