// Counts live bytes by the hooks that the sanitizers offer for malloc and free.
#include "allocation_bound.h"

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace lattice::fuzz {
namespace {

std::atomic<int64_t> live{0};
std::atomic<int64_t> allowed{INT64_MAX};
std::atomic<size_t> input_size{0};

void OnMalloc(const volatile void*, size_t size) {
  const int64_t now = live.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size);
  if (now <= allowed.load()) return;
  allowed = INT64_MAX;  // the report allocates, too
  std::fprintf(stderr, "[allocation] %lld bytes live for an input of %zu bytes, the last %zu at once\n",
               static_cast<long long>(now), input_size.load(), size);
  std::abort();
}

void OnFree(const volatile void* pointer) {
  if (pointer == nullptr) return;
  live -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(pointer)));
}

}  // namespace

AllocationBound::AllocationBound(size_t size, const AllocationLimits& limits) {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(OnMalloc, OnFree);
  if (installed == 0) std::abort();
  input_size = size;
  live = 0;
  allowed = static_cast<int64_t>(limits.bytes + limits.per_byte * size);
}

AllocationBound::~AllocationBound() { allowed = INT64_MAX; }

}  // namespace lattice::fuzz
