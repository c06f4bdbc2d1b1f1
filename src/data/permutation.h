// A pseudo-random permutation of 0..n-1 that is computed, not stored: each element in constant time and
// memory.
#ifndef LATTICE_DATA_PERMUTATION_H_
#define LATTICE_DATA_PERMUTATION_H_

#include <cstdint>

#include "base/random.h"

namespace lattice::data {

// A Feistel network over the next power of four, applied repeatedly until the result is below n (cycle
// walking). Immutable; may be used from any thread.
class Permutation {
 public:
  // A pure function of (n, seed, stream). Throws Error unless 1 <= n <= 2^62.
  Permutation(int64_t n, uint64_t seed, uint64_t stream);

  // The image of i, 0 <= i < n.
  int64_t operator()(int64_t i) const;

 private:
  uint64_t Rounds(uint64_t value) const;

  uint64_t n_;
  int half_bits_;
  Random random_;
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_PERMUTATION_H_
