// The memories of the library, for registry.cc.
#ifndef LATTICE_KERNELS_MEMORIES_H_
#define LATTICE_KERNELS_MEMORIES_H_

#include <deque>

#include "kernels/memory.h"

namespace lattice::kernels {

std::deque<Memory> LibraryMemories();

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_MEMORIES_H_
