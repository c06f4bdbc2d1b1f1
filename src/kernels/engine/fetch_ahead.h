// Software prefetching of a weight matrix that a product streams through once.
#ifndef LATTICE_KERNELS_ENGINE_FETCH_AHEAD_H_
#define LATTICE_KERNELS_ENGINE_FETCH_AHEAD_H_

#include <algorithm>
#include <cstdint>

namespace lattice::kernels {

// While the `bytes` bytes of a matrix at `now` are multiplied, prefetches as many bytes from a little further
// on. The prefetches are spread evenly over the `steps` of the work, because a burst would stall on memory
// and leave it idle afterwards. They go to the L2 cache: the L1 cache is for the activations. Work that goes
// over the bytes in several `passes` reaches their end in the first one, before the prefetches could help, so
// it prefetches the bytes behind them, for the work that comes next.
class FetchAhead {
 public:
  // Another range of memory that will be needed soon, prefetched in the same way.
  struct Region {
    const void* data = nullptr;
    int64_t bytes = 0;
  };

  FetchAhead(const void* now, int64_t bytes, int64_t steps, int64_t passes, const Region& also)
      : next_(static_cast<const char*>(now) + (passes == 1 ? kLead : std::max(bytes, kLongLead))),
        lines_((bytes + kLine - 1) / kLine),
        also_(static_cast<const char*>(also.data)),
        also_lines_((also.bytes + kLine - 1) / kLine) {
    each_ = (lines_ + steps - 1) / steps;
    also_each_ = (also_lines_ + steps - 1) / steps;
  }

  __attribute__((always_inline)) void Step() {
    Fetch(next_, lines_, each_);
    Fetch(also_, also_lines_, also_each_);
  }

 private:
  static __attribute__((always_inline)) void Fetch(const char*& next, int64_t& lines, int64_t each) {
    if (lines <= 0) return;
    lines -= each;
    for (int64_t i = 0; i < each; ++i, next += kLine) __builtin_prefetch(next, 0, 2);
  }

  static constexpr int64_t kLine = 64;
  // Prefetch distance: the bytes that arrive during the latency of one memory access. Nothing is prefetched
  // for the first bytes of the work, and what lies beyond its end is fetched in vain, so the distance is
  // short where it can be: int8 products with one row ran at 0.98 of the read bandwidth with 1.5 KiB, at 0.88
  // with 4 KiB and at 0.86 with 16 KiB.
  static constexpr int64_t kLead = 3 << 9, kLongLead = 16 << 10;
  const char* next_;
  int64_t lines_, each_;
  const char* also_;
  int64_t also_lines_, also_each_;
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ENGINE_FETCH_AHEAD_H_
