// The order in which a product goes over its rows, the same for every weight format.
#ifndef LATTICE_KERNELS_PRODUCT_BLOCKS_H_
#define LATTICE_KERNELS_PRODUCT_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace lattice::kernels {

// Calls rows(R, row, m, end) for rows [row, row + R) of W in [first, last) with rows [m, end) of x in [0,
// count); R is a std::integral_constant, 4 or 1. Of x, `fit` rows, rounded down to whole tiles of `columns`,
// stay in the L2 cache while the rows of W go by.
template <class Rows>
void OverProductBlocks(int64_t count, int64_t fit, int64_t columns, int64_t first, int64_t last,
                       const Rows& rows) {
  const int64_t block = std::max<int64_t>(1, fit / columns) * columns;
  for (int64_t m = 0; m < count; m += block) {
    const int64_t end = std::min(count, m + block);
    int64_t row = first;
    // One row of x is bound by memory, which is read fastest as one stream.
    for (; count > 1 && row + 4 <= last; row += 4) rows(std::integral_constant<int, 4>(), row, m, end);
    for (; row < last; ++row) rows(std::integral_constant<int, 1>(), row, m, end);
  }
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_PRODUCT_BLOCKS_H_
