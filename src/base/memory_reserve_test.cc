#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace lattice {
namespace {

size_t VirtualBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// In a child process with no address space left: a large allocation fails, the small ones behind it do not.
int WithoutRoom(bool reserve) {
  if (reserve) HoldMemoryReserve();
  const rlimit none = {VirtualBytes(), VirtualBytes()};
  ::setrlimit(RLIMIT_AS, &none);
  try {
    const std::unique_ptr<char[]> large(new char[64 << 20]);
    return 2;
  } catch (const std::bad_alloc&) {
  }
  try {
    std::vector<std::unique_ptr<std::string>> small;
    for (int i = 0; i < 2000; ++i) small.push_back(std::make_unique<std::string>(500, 'x'));
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 0;
}

int ExitCode(bool reserve) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(WithoutRoom(reserve));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MemoryReserve, SmallAllocationsGoOnWhereLargeOnesFail) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  EXPECT_EQ(ExitCode(true), 0);
  EXPECT_EQ(ExitCode(false), 1) << "the test takes more than the allocator holds by itself";
}

}  // namespace
}  // namespace lattice
