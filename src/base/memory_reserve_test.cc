#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <new>

namespace lattice {
namespace {

size_t VirtualBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// An answer of SmallAllocations: the system does not keep to limits.
constexpr int kNoLimit = -2;

// In a child process with no address space left, after a large allocation has failed: how many times 64 KiB can be had in
// strings of 512 bytes. What the allocator holds by itself differs with its settings.
int SmallAllocations(bool reserve) {
  if (reserve) HoldMemoryReserve();
  const rlimit none = {VirtualBytes(), VirtualBytes()};
  rlimit applied = {};
  ::setrlimit(RLIMIT_AS, &none);
  ::getrlimit(RLIMIT_AS, &applied);
  if (applied.rlim_cur != none.rlim_cur) return kNoLimit;
  try {
    char* volatile large =
        new char[64 << 20];  // volatile: an allocation that nobody looks at may be left out
    delete[] large;
    return -1;
  } catch (const std::bad_alloc&) {
  }
  constexpr int kMost = 120;
  static std::array<std::array<char*, 128>, kMost> held;
  for (int i = 0; i < kMost; ++i) {
    for (char*& piece : held[static_cast<size_t>(i)]) {
      piece = new (std::nothrow) char[512];
      if (piece == nullptr) return i;
    }
  }
  return kMost;
}

int InAChild(bool reserve) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(SmallAllocations(reserve));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<signed char>(WEXITSTATUS(status)) : -1;
}

TEST(MemoryReserve, SmallAllocationsGoOnWhereLargeOnesFail) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const int without = InAChild(false), with = InAChild(true);
  if (without == kNoLimit) GTEST_SKIP() << "limits of address space are ignored here, as qemu-user does";
  ASSERT_GE(without, 0);
  ASSERT_LT(without, 110) << "the limit does not hold";
  EXPECT_GE(with, without + 8) << "at least half a MiB more";
}

}  // namespace
}  // namespace lattice
