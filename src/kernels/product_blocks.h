// The order in which a product goes over its rows, the same for every weight format.
#ifndef LATTICE_KERNELS_PRODUCT_BLOCKS_H_
#define LATTICE_KERNELS_PRODUCT_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace lattice::kernels {

// Calls rows(R, row, m, end) for rows [row, row + R) of W in [first, last) with rows [m, end) of x in [0,
// count); R is a std::integral_constant, 4 or 1. Of x, `fit` rows, rounded down to whole tiles of `columns`,
// stay in the L2 cache while the rows of W go by; if those are not all, rows of W come in blocks that stay
// there too.
template <class Rows>
void OverProductBlocks(int64_t count, int64_t fit, int64_t columns, int64_t first, int64_t last,
                       const Rows& rows) {
  constexpr int64_t kCachedRows = 64;
  const int64_t block = std::max<int64_t>(1, fit / columns) * columns;
  const int64_t step = count <= block ? std::max<int64_t>(1, last - first) : kCachedRows;
  for (int64_t begin = first; begin < last; begin += step) {
    const int64_t stop = std::min(last, begin + step);
    for (int64_t m = 0; m < count; m += block) {
      const int64_t end = std::min(count, m + block);
      int64_t row = begin;
      // One row of x is bound by memory, which is read fastest as one stream.
      for (; count > 1 && row + 4 <= stop; row += 4) rows(std::integral_constant<int, 4>(), row, m, end);
      for (; row < stop; ++row) rows(std::integral_constant<int, 1>(), row, m, end);
    }
  }
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_PRODUCT_BLOCKS_H_
