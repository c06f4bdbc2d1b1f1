// Reads memory as fast as possible: the bandwidth that kernels which stream weights are compared with.
#ifndef LATTICE_KERNELS_DENSE_READ_BYTES_H_
#define LATTICE_KERNELS_DENSE_READ_BYTES_H_

#include <cstdint>

namespace lattice::kernels {

// Returns a value that depends on all of the bytes, except for a rest of less than 256.
uint64_t ReadBytes(const void* data, int64_t bytes);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_READ_BYTES_H_
