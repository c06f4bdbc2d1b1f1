// Work in the order of memory, shared among threads.
#ifndef LATTICE_BASE_STRETCHES_H_
#define LATTICE_BASE_STRETCHES_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace lattice {

// The numbers [0, count), cut into one stretch for each thread. A thread goes through its own from the first
// to the last, so that what it fetches ahead is what it needs; then it takes the last ones of the others, so
// that all end together.
//
//   stretches.For(pool, count, [&](int64_t i) { Work(i); });
class Stretches {
 public:
  explicit Stretches(int threads) : left_(static_cast<size_t>(threads)) {}

  int64_t size() const { return static_cast<int64_t>(left_.size()); }

  // work(i) for every number, on the threads of the pool, which has as many. As ThreadPool::For.
  template <typename Work>
  void For(ThreadPool& pool, int64_t count, const Work& work) {
    Reset(count);
    pool.For(size(), 1, [&](int64_t thread, int64_t) {
      for (int64_t i; (i = Take(thread)) >= 0;) work(i);
    });
  }

  // count < 2^32. Not while threads take from it.
  void Reset(int64_t count) {
    for (int64_t i = 0; i < size(); ++i)
      left_[static_cast<size_t>(i)].range.store(Pack(i * count / size(), (i + 1) * count / size()));
  }

  // The next number for the thread with stretch `own`, -1 when none is left. Any threads.
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
  struct alignas(64) Left {
    std::atomic<uint64_t> range{0};
  };

  static uint64_t Pack(int64_t first, int64_t last) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(last);
  }

  int64_t TakeFrom(int64_t stretch, bool front) {
    std::atomic<uint64_t>& range = left_[static_cast<size_t>(stretch)].range;
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

#endif  // LATTICE_BASE_STRETCHES_H_
