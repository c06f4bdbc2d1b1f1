// Panels: weights of 16 and 8 bits in the order in which products read them. Rows are interleaved, so that a
// vector holds the same columns of 16 rows and nothing has to be summed across its lanes.
#ifndef LATTICE_KERNELS_DENSE_PANELS_H_
#define LATTICE_KERNELS_DENSE_PANELS_H_

#include <cstdint>

namespace lattice::kernels {

enum class WeightFormat { kF32, kBf16, kInt8 };

// Bytes of one element.
constexpr int64_t WeightBytes(WeightFormat format) {
  return format == WeightFormat::kF32 ? 4 : format == WeightFormat::kBf16 ? 2 : 1;
}

// A panel is kPanelRows rows, and a word is 4 bytes of a row (2 columns of bf16, 4 of int8). A panel holds
// word 0 of all its rows, then word 1, and so on, padded with zeros in rows and columns. Bytes of int8 have
// their sign bit flipped, so that they are q + 128: the instruction that multiplies bytes takes one side as
// 0..255.
constexpr int64_t kPanelRows = 32;

constexpr int64_t WordsOf(WeightFormat format, int64_t cols) {
  const int64_t columns = 4 / WeightBytes(format);
  return (cols + columns - 1) / columns;
}
constexpr int64_t PanelsOf(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// Bytes of one panel. Panels exist for kBf16 and kInt8 only.
constexpr int64_t PanelBytes(WeightFormat format, int64_t cols) {
  return 4 * kPanelRows * WordsOf(format, cols);
}

// Packs `rows` <= kPanelRows contiguous rows [rows, cols] into a panel of PanelBytes bytes.
void PackPanel(WeightFormat format, const void* from, int64_t rows, int64_t cols, void* panel);

// Unpacks row `row` of a matrix that is stored as panels: [cols] elements as they were before PackPanel.
void UnpackRow(WeightFormat format, const void* panels, int64_t row, int64_t cols, void* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_PANELS_H_
