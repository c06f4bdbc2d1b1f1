// A bound on what a fuzz target may allocate for an input: memory that grows with what a file says, instead of with its
// size, is how a small file takes a machine down.
#ifndef LATTICE_FUZZ_ALLOCATION_BOUND_H_
#define LATTICE_FUZZ_ALLOCATION_BOUND_H_

#include <cstddef>

namespace lattice::fuzz {

struct AllocationLimits {
  size_t bytes = size_t{1} << 20;  // for an input of no bytes
  size_t per_byte = 512;  // and for each byte of it; a JSON value of two characters takes about a hundred
};

// While it lives, the bytes allocated and not yet freed may exceed those at its start by what the limits give for an
// input of `size` bytes; beyond that the program ends with a stack trace of the allocation. One at a time.
class AllocationBound {
 public:
  explicit AllocationBound(size_t size, const AllocationLimits& limits = {});
  ~AllocationBound();
  AllocationBound(const AllocationBound&) = delete;
  AllocationBound& operator=(const AllocationBound&) = delete;
};

}  // namespace lattice::fuzz

#endif  // LATTICE_FUZZ_ALLOCATION_BOUND_H_
