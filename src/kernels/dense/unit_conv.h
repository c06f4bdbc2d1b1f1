// Two short convolutions of one input, whose outputs are normalised to length 1: queries and keys.
//   c_f[b,t,:] = bias_f + sum_j weight_f[j,:] x[b, t-W+1+j, :]       (kernels/dense/short_conv.h)
//   y_f = c_f / sqrt(|c_f|^2 + eps)  for every vector of `size` neighbouring channels
// Computed in float32. The backward pass recomputes c from x, which costs a fraction of reading it from
// memory.
#ifndef LATTICE_KERNELS_DENSE_UNIT_CONV_H_
#define LATTICE_KERNELS_DENSE_UNIT_CONV_H_

#include <cstdint>

namespace lattice::kernels {

// S is float, or uint16_t for the bits of bfloat16. Everything is contiguous.
template <typename S>
struct UnitConv {
  static constexpr int64_t kFilters = 2;

  int64_t batch = 0, time = 0, channels = 0, width = 0;
  int64_t size = 0;  // of a vector; divides channels
  float eps = 0;
  const float* weight[kFilters] = {};  // [W,C], newest token last
  const float* bias[kFilters] = {};    // [C]
  const S* x = nullptr;                // [B,T,C]
  const S* past = nullptr;             // [B,W-1,C], oldest first, or null: zeros
  float* y[kFilters] = {};             // [B,T,C], forward

  // backward; no gradient for `past`
  const float* dy[kFilters] = {};  // [B,T,C]
  S* dx = nullptr;                 // [B,T,C]
  float* partial = nullptr;        // [Tiles, 2, W+1, C]: each tile's share of the gradients of weights (rows
                                   // 0..W-1) and bias (row W), which the caller adds in order

  // Work is handed out in tiles of rows (b, t); tile i is the same rows for any number of threads.
  static constexpr int64_t kTileRows = 32;
  int64_t TilesPerSequence() const { return (time + kTileRows - 1) / kTileRows; }
  int64_t Tiles() const { return batch * TilesPerSequence(); }
};

// Tiles [first, last).
void UnitConvForward(const UnitConv<float>& p, int64_t first, int64_t last);
void UnitConvForward(const UnitConv<uint16_t>& p, int64_t first, int64_t last);
void UnitConvBackward(const UnitConv<float>& p, int64_t first, int64_t last);
void UnitConvBackward(const UnitConv<uint16_t>& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_UNIT_CONV_H_
