// A work-stealing loop: threads go through neighbouring indices, and steal from each other at the end.
#ifndef LATTICE_BASE_WORK_STEALING_LOOP_H_
#define LATTICE_BASE_WORK_STEALING_LOOP_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace lattice {

// The indices [0, count), divided into one contiguous range per thread. A thread takes indices from the front
// of its own range, in the order of memory, so that what it prefetches is what it needs next. When its range
// is empty, it steals from the back of the others', so that all threads finish together.
//
//   loop.For(pool, count, [&](int64_t i) { Work(i); });
class WorkStealingLoop {
 public:
  explicit WorkStealingLoop(int threads) : left_(static_cast<size_t>(threads)) {}

  int64_t size() const { return static_cast<int64_t>(left_.size()); }

  // Calls work(i) for every index, on the threads of the pool, which must have as many as there are ranges.
  // The rules of ThreadPool::For apply.
  template <typename Work>
  void For(ThreadPool& pool, int64_t count, const Work& work) {
    Reset(count);
    pool.For(size(), 1, [&](int64_t thread, int64_t) {
      for (int64_t i; (i = Take(thread)) >= 0;) work(i);
    });
  }

  // Starts over with [0, count), count < 2^32. Not to be called while threads take indices.
  void Reset(int64_t count) {
    for (int64_t i = 0; i < size(); ++i)
      left_[static_cast<size_t>(i)].range.store(Pack(i * count / size(), (i + 1) * count / size()));
  }

  // The next index for the thread that has range `own`; -1 when none is left. Thread-safe.
  int64_t Take(int64_t own) {
    const int64_t first = TakeFrom(own, true);
    if (first >= 0) return first;
    for (int64_t i = 1; i < size(); ++i) {
      const int64_t last = TakeFrom((own + i) % size(), false);
      if (last >= 0) return last;
    }
    return -1;
  }

 private:
  // What is left of a range, first and last packed into one word, on a cache line of its own.
  struct alignas(64) Left {
    std::atomic<uint64_t> range{0};
  };

  static uint64_t Pack(int64_t first, int64_t last) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(last);
  }

  int64_t TakeFrom(int64_t owner, bool front) {
    std::atomic<uint64_t>& range = left_[static_cast<size_t>(owner)].range;
    uint64_t now = range.load(std::memory_order_relaxed);
    while (true) {
      const auto first = static_cast<int64_t>(now >> 32), last = static_cast<int64_t>(now & 0xffffffffu);
      if (first >= last) return -1;
      if (range.compare_exchange_weak(now, front ? Pack(first + 1, last) : Pack(first, last - 1)))
        return front ? first : last - 1;
    }
  }

  std::vector<Left> left_;
};

}  // namespace lattice

#endif  // LATTICE_BASE_WORK_STEALING_LOOP_H_
