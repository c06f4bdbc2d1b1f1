// Weights of 16 and 8 bits in the order in which products read them: many rows side by side, so that a vector
// holds the same columns of 16 rows and sums never have to be added across its lanes.
#ifndef LATTICE_KERNELS_DENSE_PANELS_H_
#define LATTICE_KERNELS_DENSE_PANELS_H_

#include <cstdint>

namespace lattice::kernels {

enum class WeightFormat { kF32, kBf16, kInt8 };

// Bytes of one element.
constexpr int64_t WeightBytes(WeightFormat format) {
  return format == WeightFormat::kF32 ? 4 : format == WeightFormat::kBf16 ? 2 : 1;
}

// kPanelRows rows are a panel, and 4 bytes of a row (2 columns of bf16, 4 of int8) are a word. A panel holds
// word 0 of all its rows, then word 1, and so on; rows and columns that are missing are zeros. Bytes of int8
// have their sign bit flipped: the instruction that multiplies bytes takes one side as 0..255.
constexpr int64_t kPanelRows = 32;

constexpr int64_t WordsOf(WeightFormat format, int64_t cols) {
  const int64_t columns = 4 / WeightBytes(format);
  return (cols + columns - 1) / columns;
}
constexpr int64_t PanelsOf(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// Of one panel; both for kBf16 and kInt8 only.
constexpr int64_t PanelBytes(WeightFormat format, int64_t cols) {
  return 4 * kPanelRows * WordsOf(format, cols);
}

// Writes a panel, PanelBytes, of `rows` <= kPanelRows rows [rows, cols] that stand one after the other.
void PackPanel(WeightFormat format, const void* from, int64_t rows, int64_t cols, void* panel);

// Row `row` of the panels of a matrix, [cols] elements as they were packed.
void UnpackRow(WeightFormat format, const void* panels, int64_t row, int64_t cols, void* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_PANELS_H_
