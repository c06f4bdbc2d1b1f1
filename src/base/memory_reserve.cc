// Holds mapped but untouched pieces of memory, which the new_handler unmaps when an allocation fails.
#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace lattice {
namespace {

// glibc extends the heap in steps of a huge page (2 MiB) where the launcher asks for huge pages. With pieces of 1 MiB both
// together were such a step only if the break happened to be aligned.
constexpr size_t kPiece = 4 << 20;
constexpr int kPiecesPerThread = 2;

std::array<std::atomic<void*>, 16> pieces{};
// Counts the calls of HoldMemoryReserve: the limit per thread starts over with each.
std::atomic<uint64_t> filling{0};

// The pieces that a thread has taken since a filling.
struct Taken {
  uint64_t filling = 0;
  int pieces = 0;
};
thread_local Taken taken;

// The new_handler: returns when it has unmapped a piece, throws when there is none for this thread.
void GiveBack() {
  const uint64_t now = filling.load();
  if (taken.filling != now) taken = {now, 0};
  if (taken.pieces == kPiecesPerThread) throw std::bad_alloc();
  for (std::atomic<void*>& piece : pieces) {
    void* held = piece.exchange(nullptr);
    if (held == nullptr) continue;
    ::munmap(held, kPiece);
    ++taken.pieces;
    return;
  }
  throw std::bad_alloc();
}

}  // namespace

void HoldMemoryReserve() noexcept {
  std::set_new_handler(GiveBack);
  ++filling;
  for (std::atomic<void*>& piece : pieces) {
    if (piece.load() != nullptr) continue;
    void* fresh = ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return;
    void* none = nullptr;
    if (!piece.compare_exchange_strong(none, fresh)) ::munmap(fresh, kPiece);
  }
}

}  // namespace lattice
