// Groups: rows of four-bit weights as files hold them, and the choice of their factors and offsets.
//
// A row is a sequence of groups of kGroupColumns columns, of which the last may be padded. A weight of a group is
// W[c] = factor q[c] + offset, with q in 0..15. A group is kGroupBytes bytes: factor and offset in bf16, then the
// integers, 8 columns in every 4 bytes: byte i of bytes 4 j to 4 j + 3 holds column 8 j + i in its low four bits and
// column 8 j + 4 + i in its high ones, so that a mask and a shift give two words of four bytes.
#ifndef LATTICE_KERNELS_DENSE_GROUPS_H_
#define LATTICE_KERNELS_DENSE_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dense/panels.h"

namespace lattice::kernels {

// The values that the weights of a group can have: 16 of them, evenly spaced.
struct Grid {
  float factor = 0, offset = 0;  // both exact in bf16

  static constexpr int kLargest = 15;
  // The integer whose value is nearest to w.
  uint8_t Nearest(float w) const;
  float Value(uint8_t q) const { return factor * static_cast<float>(q) + offset; }
};

// A grid with a small sum of squared errors for w [count], 1 <= count, where the square of w[i] counts weights[i] >= 0
// times; null: once. Values that are not finite make it zero.
Grid FitGrid(const float* w, int64_t count, const float* weights = nullptr);

// Writes a group of kGroupBytes bytes; q is [kGroupColumns].
void PackGroup(const Grid& grid, const uint8_t* q, std::byte* out);

// The grid of a group of kGroupBytes bytes.
Grid GridOf(const std::byte* group);

// Quantises one row of float32 weights, each to the nearest value of its group's grid: RowBytes bytes.
void QuantizeGroups(const float* w, int64_t cols, std::byte* row);

// Converts such a row to float32.
void WidenGroups(const std::byte* row, int64_t cols, float* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_GROUPS_H_
