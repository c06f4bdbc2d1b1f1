// Memory that a program with threads gives back to the system.
#ifndef LATTICE_BASE_MEMORY_RETURN_H_
#define LATTICE_BASE_MEMORY_RETURN_H_

#include <cstdint>
#include <limits>

namespace lattice {

// Makes all threads allocate from one arena of glibc. With an arena for each thread, malloc_trim leaves up to 64 MiB
// at the end of every arena but the first. Call it before the first thread starts: arenas that exist stay.
void UseOneArena() noexcept;

// Freed memory stays with the process in case it is needed again. Call Look() once in a while, for example every
// second: it gives that memory back when it has become much.
class MemoryReturn {
 public:
  MemoryReturn();
  ~MemoryReturn();
  MemoryReturn(const MemoryReturn&) = delete;
  MemoryReturn& operator=(const MemoryReturn&) = delete;

  void Look() noexcept;

 private:
  // Resident bytes beyond those that are allocated: free ones, and what does not come from malloc.
  int64_t HeldBeyondUse() const noexcept;

  const int statm_;  // opened once, for when there are no more descriptors
  int64_t least_ = std::numeric_limits<int64_t>::max();  // seen since memory was last given back
};

}  // namespace lattice

#endif  // LATTICE_BASE_MEMORY_RETURN_H_
