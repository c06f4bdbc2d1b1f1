// A queue of memory to prefetch into the L2 cache, a few cache lines per row while a pass goes over a state.
//
// A state and its gradient fill the L1 cache, and few lines can be in flight at a time: prefetching all lines
// of a token at once, before the pass, delayed it by 300 cycles of 5,600 (backward, 64 x 64); prefetching
// them into the L1 cache evicted the state (150 cycles).
#ifndef LATTICE_KERNELS_ENGINE_PREFETCH_QUEUE_H_
#define LATTICE_KERNELS_ENGINE_PREFETCH_QUEUE_H_

#include <cstddef>
#include <cstdint>

namespace lattice::kernels {

class PrefetchQueue {
 public:
  // Queues n elements; at most kPieces calls.
  template <typename T>
  __attribute__((always_inline)) void Add(const T* x, int64_t n) {
    const size_t lines = (static_cast<size_t>(n) * sizeof(T) + kLine - 1) / kLine;
    pieces_[count_++] = {reinterpret_cast<const char*>(x), lines};
    lines_ += lines;
  }

  // Spreads the queued lines evenly over a pass of `steps` steps.
  __attribute__((always_inline)) void Spread(size_t steps) { each_ = (lines_ + steps - 1) / steps; }

  // Prefetches the lines of one step.
  __attribute__((always_inline)) void Step() {
    for (size_t n = 0; n < each_ && lines_ > 0; ++n, --lines_) {
      while (pieces_[at_].lines == 0) ++at_;
      __builtin_prefetch(pieces_[at_].next, 0, 2);
      pieces_[at_].next += kLine;
      --pieces_[at_].lines;
    }
  }

 private:
  static constexpr size_t kLine = 64, kPieces = 12;
  struct Piece {
    const char* next;
    size_t lines;
  };
  Piece pieces_[kPieces];
  size_t count_ = 0, at_ = 0, lines_ = 0, each_ = 0;
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ENGINE_PREFETCH_QUEUE_H_
