// Panels: weights of 16, 8 and 4 bits in the order in which products read them. Rows are interleaved, so that a
// vector holds the same columns of 16 rows and nothing has to be summed across its lanes.
#ifndef LATTICE_KERNELS_DENSE_PANELS_H_
#define LATTICE_KERNELS_DENSE_PANELS_H_

#include <cstdint>

namespace lattice::kernels {

enum class WeightFormat { kF32, kBf16, kInt8, kInt4 };

// int4: columns of a group, and bytes of one with its factor and offset (groups.h).
constexpr int64_t kGroupColumns = 32, kGroupBytes = 4 + kGroupColumns / 2;

constexpr int64_t GroupsOf(int64_t cols) { return (cols + kGroupColumns - 1) / kGroupColumns; }

// Bytes of one row as files hold it.
constexpr int64_t RowBytes(WeightFormat format, int64_t cols) {
  switch (format) {
    case WeightFormat::kF32:
      return 4 * cols;
    case WeightFormat::kBf16:
      return 2 * cols;
    case WeightFormat::kInt8:
      return cols;
    case WeightFormat::kInt4:
      break;
  }
  return GroupsOf(cols) * kGroupBytes;
}

// A panel is kPanelRows rows, and a word is 4 bytes of a row: 2 columns of bf16, 4 of int8; of int4 the factor and the
// offset of a group, or 8 columns. A panel holds word 0 of all its rows, then word 1, and so on, padded with zeros in
// rows and columns. Bytes of int8 have their sign bit flipped, so that they are q + 128: the instruction that
// multiplies bytes takes one side as 0..255.
constexpr int64_t kPanelRows = 32;

constexpr int64_t WordsOf(WeightFormat format, int64_t cols) { return (RowBytes(format, cols) + 3) / 4; }
constexpr int64_t PanelsOf(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// Bytes of one panel. There are none of kF32.
constexpr int64_t PanelBytes(WeightFormat format, int64_t cols) {
  return 4 * kPanelRows * WordsOf(format, cols);
}

// Packs `rows` <= kPanelRows contiguous rows of RowBytes bytes each into a panel of PanelBytes bytes.
void PackPanel(WeightFormat format, const void* from, int64_t rows, int64_t cols, void* panel);

// Unpacks row `row` of a matrix that is stored as panels: RowBytes bytes as they were before PackPanel.
void UnpackRow(WeightFormat format, const void* panels, int64_t row, int64_t cols, void* out);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_PANELS_H_
