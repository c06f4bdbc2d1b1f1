// Software prefetching for products that read a matrix once.
#ifndef LATTICE_KERNELS_FETCH_AHEAD_H_
#define LATTICE_KERNELS_FETCH_AHEAD_H_

#include <cstdint>

namespace lattice::kernels {

// Asks for the bytes that will be needed next, evenly over the steps of the work before them: a burst would
// wait for memory, and the rest of the work would leave it idle.
class FetchAhead {
 public:
  FetchAhead(const void* next, int64_t bytes, int64_t steps)
      : next_(static_cast<const char*>(next)), lines_((bytes + kLine - 1) / kLine) {
    each_ = (lines_ + steps - 1) / steps;
  }

  __attribute__((always_inline)) void Step() {
    if (lines_ <= 0) return;
    lines_ -= each_;
    for (int64_t i = 0; i < each_; ++i, next_ += kLine) __builtin_prefetch(next_);
  }

 private:
  static constexpr int64_t kLine = 64;
  const char* next_;
  int64_t lines_, each_;
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_FETCH_AHEAD_H_
