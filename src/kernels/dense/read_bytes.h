// Reading memory as fast as it goes, to know what a kernel that streams weights is measured against.
#ifndef LATTICE_KERNELS_DENSE_READ_BYTES_H_
#define LATTICE_KERNELS_DENSE_READ_BYTES_H_

#include <cstdint>

namespace lattice::kernels {

// A value that depends on all of the bytes (whole vectors of 256; a rest is left out).
uint64_t ReadBytes(const void* data, int64_t bytes);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_READ_BYTES_H_
