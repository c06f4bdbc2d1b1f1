// The registry of memories: the library's own and those of plug-ins, by name.
#ifndef LATTICE_KERNELS_REGISTRY_H_
#define LATTICE_KERNELS_REGISTRY_H_

#include <deque>
#include <span>
#include <string_view>

#include "base/export.h"
#include "kernels/memory.h"

namespace lattice::kernels {

// All memories, in the order in which they are listed to users. References stay valid.
const std::deque<Memory>& Memories();
std::span<const std::string_view> MemoryNames();

// Adds a memory that the library does not have. Throws Error, and adds nothing, when the name is taken, a
// kernel is missing or the description contradicts itself. Call it before other threads look at the memories.
void RegisterMemory(MemoryInfo info, const KernelSet& kernels, const KernelSet& shrink_kernels = {});

// Throws Error with the nearest name and all names when there is no such memory.
const Memory& FindMemory(std::string_view name);
// The memory of the Lattice family with that objective.
const Memory& FindMemory(Objective objective);

// The table itself, exported: a program may contain this library twice, by itself and inside
// liblattice_ops.so, and because this symbol is visible, both use the program's table.
LATTICE_EXPORT std::deque<Memory>& MemoryTable();

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_REGISTRY_H_
