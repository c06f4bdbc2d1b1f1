// An allocator that aligns std::vector to cache lines, for SIMD code.
#ifndef LATTICE_BASE_ALIGNED_ALLOCATOR_H_
#define LATTICE_BASE_ALIGNED_ALLOCATOR_H_

#include <cstddef>
#include <new>

namespace lattice {

// Use as std::vector<float, AlignedAllocator<float>>.
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* data, size_t) { ::operator delete(data, kAlignment); }
  template <typename U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

}  // namespace lattice

#endif  // LATTICE_BASE_ALIGNED_ALLOCATOR_H_
