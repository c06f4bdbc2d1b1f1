// Sums over tokens that were made tile by tile.
#ifndef LATTICE_OPS_TILES_H_
#define LATTICE_OPS_TILES_H_

#include <ATen/ATen.h>

namespace lattice {

// partial [tiles, ...] contiguous -> [...], added in order, so that the sum does not depend on the number of
// threads.
inline at::Tensor SumTiles(const at::Tensor& partial) {
  at::Tensor total = at::zeros(partial.sizes().slice(1), partial.options());
  const int64_t count = total.numel();
  AT_DISPATCH_FLOATING_TYPES(partial.scalar_type(), "lattice_sum_tiles", [&] {
    const scalar_t* from = partial.const_data_ptr<scalar_t>();
    scalar_t* to = total.mutable_data_ptr<scalar_t>();
    for (int64_t tile = 0; tile < partial.size(0); ++tile, from += count) {
      for (int64_t i = 0; i < count; ++i) to[i] += from[i];
    }
  });
  return total;
}

}  // namespace lattice

#endif  // LATTICE_OPS_TILES_H_
