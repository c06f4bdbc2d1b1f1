#include "base/memory_return.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace lattice {
namespace {

int64_t ResidentBytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(MemoryReturn, FreedMemoryGoesBackAndUsedMemoryStays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has an allocator of its own";
#endif
  MemoryReturn memory;
  memory.Look();
  constexpr size_t kPieces = 16384, kBytes = 4096;  // 64 MiB, each piece too small to be mapped for itself
  std::vector<std::unique_ptr<char[]>> pieces(kPieces);
  for (auto& piece : pieces) {
    piece = std::make_unique<char[]>(kBytes);
    std::memset(piece.get(), 1, kBytes);
  }
  memory.Look();
  const int64_t full = ResidentBytes();
  // The last piece stays, so that what is freed does not lie at the end of the heap.
  for (size_t i = 0; i + 1 < kPieces; ++i) pieces[i].reset();
  EXPECT_EQ(pieces.back()[kBytes - 1], 1);
  memory.Look();
  EXPECT_LT(ResidentBytes(), full - (int64_t{48} << 20));
}

}  // namespace
}  // namespace lattice
