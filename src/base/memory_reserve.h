// An emergency reserve of address space for when the system has no more memory. A program that goes on
// without memory (a server refuses the request) still makes small allocations where nothing may fail:
// destructors, failure paths, the text of an error. These are served from the reserve; large allocations fail
// as usual.
#ifndef LATTICE_BASE_MEMORY_RESERVE_H_
#define LATTICE_BASE_MEMORY_RESERVE_H_

namespace lattice {

// Fills the reserve, 16 pieces of 4 MiB that are never touched, and installs a new_handler: when an
// allocation fails, operator new gives a piece back to the system and tries again. A thread gets at most two
// pieces (8 MiB) between two calls of this function, so that a large allocation does not use up what others
// need. Call it repeatedly, for example every 200 ms: it replaces the pieces that were used, as far as the
// system allows. Thread-safe.
void HoldMemoryReserve() noexcept;

}  // namespace lattice

#endif  // LATTICE_BASE_MEMORY_RESERVE_H_
