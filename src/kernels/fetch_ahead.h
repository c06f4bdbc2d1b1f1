// Software prefetching for products that read a matrix once.
#ifndef LATTICE_KERNELS_FETCH_AHEAD_H_
#define LATTICE_KERNELS_FETCH_AHEAD_H_

#include <algorithm>
#include <cstdint>

namespace lattice::kernels {

// While `bytes` bytes of a matrix at `now` are being multiplied, asks for as many a little further on, evenly
// over the steps of the work: a burst would wait for memory, and the rest of the work would leave it idle.
// They go to the L2 cache; the activations need the L1 cache.
class FetchAhead {
 public:
  FetchAhead(const void* now, int64_t bytes, int64_t steps)
      : next_(static_cast<const char*>(now) + std::max(bytes, kLead)), lines_((bytes + kLine - 1) / kLine) {
    each_ = (lines_ + steps - 1) / steps;
  }

  __attribute__((always_inline)) void Step() {
    if (lines_ <= 0) return;
    lines_ -= each_;
    for (int64_t i = 0; i < each_; ++i, next_ += kLine) __builtin_prefetch(next_, 0, 2);
  }

 private:
  static constexpr int64_t kLine = 64;
  // What arrives while a memory access is under way.
  static constexpr int64_t kLead = 16 << 10;
  const char* next_;
  int64_t lines_, each_;
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_FETCH_AHEAD_H_
