// The order in which a product goes over panels of W and tiles of x, the same for every instruction set.
#ifndef LATTICE_KERNELS_DENSE_PRODUCT_PANELS_H_
#define LATTICE_KERNELS_DENSE_PRODUCT_PANELS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/dense/matmul.h"
#include "kernels/dense/product_blocks.h"
#include "kernels/engine/fetch_ahead.h"

namespace lattice::kernels {

// One panel of W, and the range of its rows that is to be computed.
struct PanelSlice {
  const char* data = nullptr;
  int64_t row = 0;              // the panel's first row in W
  int64_t first = 0, last = 0;  // the range of rows, counted from `row`
};

// Words of a panel between two steps of the prefetching; int4 takes a step for each group.
constexpr int64_t kAheadWords = 4;

constexpr int64_t AheadSteps(WeightFormat format, int64_t cols) {
  if (format == WeightFormat::kInt4) return GroupsOf(cols);
  return std::max<int64_t>(1, WordsOf(format, cols) / kAheadWords);
}

// Calls tile(C, slice, m, ahead) for every panel with rows in [first, last) and every tile of rows [m, m + C)
// of x. C is a std::integral_constant, so that a micro-kernel is compiled for each size of a tile.
template <class Tile>
void OverPanels(const MatMul& p, int64_t first, int64_t last, const Tile& tile) {
  constexpr int kColumns = PackedRows::kTile;
  constexpr int64_t kCachedPanels = 2;
  const int64_t bytes = PanelBytes(p.w.format, p.w.cols), steps = AheadSteps(p.w.format, p.w.cols);
  const auto rows = [&](int64_t panel, int64_t m, int64_t stop) {
    const char* data = static_cast<const char*>(p.w.data) + panel * bytes;
    const int64_t row = panel * kPanelRows;
    const PanelSlice slice = {data, row, std::max<int64_t>(0, first - row), std::min(kPanelRows, last - row)};
    const int64_t tiles = (stop - m + kColumns - 1) / kColumns;
    FetchAhead ahead(data, bytes, steps * tiles, tiles, p.also_prefetch);
    for (; m + kColumns <= stop; m += kColumns)
      tile(std::integral_constant<int, kColumns>(), slice, m, ahead);
    [&]<int... kLeft>(std::integer_sequence<int, kLeft...>) {
      ((stop - m == kLeft + 1 ? tile(std::integral_constant<int, kLeft + 1>(), slice, m, ahead) : void()),
       ...);
    }
    (std::make_integer_sequence<int, kColumns - 1>());
  };
  const int64_t x_bytes = 4 * WordsOf(ActivationFormat(p.w.format), p.w.cols);
  OverBlocks(p.count, x_bytes, kColumns, kCachedPanels, first / kPanelRows, PanelsOf(last),
             [&](int64_t panel, int64_t stop, int64_t m, int64_t end) {
               for (; panel < stop; ++panel) rows(panel, m, end);
             });
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_PRODUCT_PANELS_H_
