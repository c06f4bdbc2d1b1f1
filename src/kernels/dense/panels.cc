// Packs weight matrices into panels, and unpacks rows of them.
#include "kernels/dense/panels.h"

#include <algorithm>
#include <cstring>

namespace lattice::kernels {
namespace {

// The bits of a word that packing flips: the signs of int8.
constexpr uint32_t FlippedSigns(WeightFormat format) {
  return format == WeightFormat::kInt8 ? 0x80808080u : 0u;
}

}  // namespace

void PackPanel(WeightFormat format, const void* from, int64_t rows, int64_t cols, void* panel) {
  // Reads one cache line of every row at a time.
  constexpr int64_t kWords = 16;
  const uint32_t flip = FlippedSigns(format);
  const int64_t row_bytes = RowBytes(format, cols), words = WordsOf(format, cols), whole = row_bytes / 4;
  const auto* bytes = static_cast<const char*>(from);
  auto* out = static_cast<uint32_t*>(panel);
  std::fill_n(out, rows < kPanelRows || whole < words ? words * kPanelRows : 0, flip);
  for (int64_t first = 0; first < whole; first += kWords) {
    for (int64_t k = first; k < std::min(whole, first + kWords); ++k) {
      for (int64_t row = 0; row < rows; ++row) {
        uint32_t word;
        std::memcpy(&word, bytes + row * row_bytes + 4 * k, 4);
        out[k * kPanelRows + row] = word ^ flip;
      }
    }
  }
  for (int64_t row = 0; whole < words && row < rows; ++row) {
    uint32_t word = 0;
    std::memcpy(&word, bytes + row * row_bytes + 4 * whole, static_cast<size_t>(row_bytes - 4 * whole));
    out[whole * kPanelRows + row] = word ^ flip;
  }
}

void UnpackRow(WeightFormat format, const void* panels, int64_t row, int64_t cols, void* out) {
  const int64_t words = WordsOf(format, cols), row_bytes = RowBytes(format, cols);
  const auto* from =
      static_cast<const uint32_t*>(panels) + row / kPanelRows * words * kPanelRows + row % kPanelRows;
  for (int64_t k = 0; k < words; ++k) {
    const uint32_t word = from[k * kPanelRows] ^ FlippedSigns(format);
    std::memcpy(static_cast<char*>(out) + 4 * k, &word,
                static_cast<size_t>(std::min<int64_t>(4, row_bytes - 4 * k)));
  }
}

}  // namespace lattice::kernels
