#include "base/memory_return.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace lattice {
namespace {

// Less is not worth the page faults when it is needed again.
constexpr int64_t kWorthwhile = int64_t{8} << 20;

}  // namespace

void UseOneArena() noexcept { ::mallopt(M_ARENA_MAX, 1); }

MemoryReturn::MemoryReturn() : statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

MemoryReturn::~MemoryReturn() {
  if (statm_ >= 0) ::close(statm_);
}

int64_t MemoryReturn::HeldBeyondUse() const noexcept {
  std::array<char, 128> text{};
  const ssize_t size = ::pread(statm_, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  // "all resident ...", in pages.
  const char* const end = text.data() + size;
  int64_t all = 0, resident = 0;
  const char* const behind = std::from_chars(text.data(), end, all).ptr;
  if (behind < end) std::from_chars(behind + 1, end, resident);
  const struct mallinfo2 used = ::mallinfo2();
  return resident * ::sysconf(_SC_PAGESIZE) - static_cast<int64_t>(used.uordblks + used.hblkhd);
}

void MemoryReturn::Look() noexcept {
  const int64_t held = HeldBeyondUse();
  least_ = std::min(least_, held);
  if (held - least_ < kWorthwhile) return;
  ::malloc_trim(0);
  least_ = HeldBeyondUse();
}

}  // namespace lattice
