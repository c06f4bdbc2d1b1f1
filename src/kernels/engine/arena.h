// A thread's scratch buffer, reused from call to call, and a way to lay out arrays in it.
#ifndef LATTICE_KERNELS_ENGINE_ARENA_H_
#define LATTICE_KERNELS_ENGINE_ARENA_H_

#include <cassert>
#include <cstddef>
#include <span>

namespace lattice::kernels {

// At least `bytes` of uninitialised memory, aligned to 64 bytes, private to the calling thread and valid
// until its next call. It grows to the largest request and is freed when the thread ends. Throws
// std::bad_alloc.
void* ThreadArena(size_t bytes);

// A bump allocator: hands out consecutive arrays of a buffer. Without a buffer it only counts elements.
template <typename T>
class Layout {
 public:
  explicit Layout(T* base = nullptr) : base_(base) {}

  T* Take(size_t count) {
    T* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += count;
    return piece;
  }
  size_t used() const { return used_; }

 private:
  T* const base_;
  size_t used_ = 0;
};

// Lays out the thread's arena as `place(Layout<T>&)` says. `place` runs twice, to count and then to place, so
// the total size is never written down apart from the arrays.
template <typename T, class Place>
std::span<T> PlaceInArena(const Place& place) {
  Layout<T> counted;
  place(counted);
  T* base = static_cast<T*>(ThreadArena(counted.used() * sizeof(T)));
  Layout<T> placed(base);
  place(placed);
  assert(placed.used() == counted.used());
  return {base, placed.used()};
}

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ENGINE_ARENA_H_
