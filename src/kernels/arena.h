// Scratch memory that a thread keeps between calls.
#ifndef LATTICE_KERNELS_ARENA_H_
#define LATTICE_KERNELS_ARENA_H_

#include <cstddef>

namespace lattice::kernels {

// At least `bytes` of uninitialised memory, aligned to 64 bytes, private to the calling thread and valid
// until its next call. It grows to the largest request and is freed when the thread ends. Throws
// std::bad_alloc.
void* ThreadArena(size_t bytes);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ARENA_H_
