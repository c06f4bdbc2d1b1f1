// The memories that the library itself has, which the registry starts with.
#ifndef LATTICE_KERNELS_MEMORIES_H_
#define LATTICE_KERNELS_MEMORIES_H_

#include <deque>

#include "kernels/memory.h"

namespace lattice::kernels {

std::deque<Memory> LibraryMemories();

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MEMORIES_H_
