#include "kernels/engine/arena.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace lattice::kernels {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};

struct Arena {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};

}  // namespace

void* ThreadArena(size_t bytes) {
  thread_local Arena arena;
  if (bytes > arena.bytes) {
    constexpr size_t kAlign = 64;
    const size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
    arena = {};
    arena.memory.reset(std::aligned_alloc(kAlign, rounded));
    if (!arena.memory) throw std::bad_alloc();
    arena.bytes = rounded;
  }
  return arena.memory.get();
}

}  // namespace lattice::kernels
