// Address space held back for the moment when the system gives no more. A program that must go on without memory
// (a server refuses the request) still makes small allocations where nothing may fail: destructors, failure
// paths, the text of an error. They live on the reserve; large allocations fail as usual.
#ifndef LATTICE_BASE_MEMORY_RESERVE_H_
#define LATTICE_BASE_MEMORY_RESERVE_H_

namespace lattice {

// Fills the reserve, 16 MiB that are never touched, and lets operator new fall back on it: an allocation that fails
// gives a piece back to the system and is tried again. A thread gets at most two pieces (2 MiB) between two
// calls of this function, so that a large allocation does not use up what others need. Call it again and again,
// for example every 200 ms: it replaces what was used, as far as the system allows. Any thread.
void HoldMemoryReserve() noexcept;

}  // namespace lattice

#endif  // LATTICE_BASE_MEMORY_RESERVE_H_
