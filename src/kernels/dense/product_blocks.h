// Cache blocking of a matrix product: the order in which it goes over W and x, the same for every format and
// instruction set.
#ifndef LATTICE_KERNELS_DENSE_PRODUCT_BLOCKS_H_
#define LATTICE_KERNELS_DENSE_PRODUCT_BLOCKS_H_

#include <algorithm>
#include <cstdint>

namespace lattice::kernels {

// Calls block(begin, stop, m, end) for parts (rows or panels) [begin, stop) of W with rows [m, end) of x,
// until all of [first, last) has met all of [0, count). As many rows of x as fit into the L2 cache, in whole
// tiles of `columns` rows, stay there while W streams by. If those are not all rows, W goes by `cached` parts
// at a time, which stay in the cache as well.
template <class Block>
void OverBlocks(int64_t count, int64_t row_bytes, int64_t columns, int64_t cached, int64_t first,
                int64_t last, const Block& block) {
  constexpr int64_t kCacheBytes = 384 << 10;
  const int64_t rows = std::max<int64_t>(1, kCacheBytes / (row_bytes * columns)) * columns;
  const int64_t step = count <= rows ? std::max<int64_t>(1, last - first) : cached;
  for (int64_t begin = first; begin < last; begin += step) {
    for (int64_t m = 0; m < count; m += rows)
      block(begin, std::min(last, begin + step), m, std::min(count, m + rows));
  }
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_PRODUCT_BLOCKS_H_
