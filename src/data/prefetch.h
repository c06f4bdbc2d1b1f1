// Reads batches ahead in a background thread, so that a step does not wait for its tokens.
#ifndef LATTICE_DATA_PREFETCH_H_
#define LATTICE_DATA_PREFETCH_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/batches.h"

namespace lattice::data {

// Used by one thread. The batches must outlive the object.
class Prefetch {
 public:
  // Of every step, `count` rows from `first` on are read; by default all.
  explicit Prefetch(const Batches& batches);
  Prefetch(const Batches& batches, int64_t first, int64_t count);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The rows of `step` as Batches::Read writes them, [rows, seq_len + 1]. Consecutive steps are prefetched;
  // any other step is read on demand. Throws Error when reading fails.
  std::vector<int64_t> Take(int64_t step);

  // Total seconds that Take() has spent waiting.
  double waited() const { return waited_; }

 private:
  struct Ready {
    int64_t step;
    std::vector<int64_t> tokens;
    std::exception_ptr error;
  };
  void Loop();

  const Batches& batches_;
  const int64_t first_, count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  int64_t next_ = -1;       // the step that the thread reads next; -1: none yet
  int64_t generation_ = 0;  // incremented by every seek: results of older generations are dropped
  bool closing_ = false;
  double waited_ = 0;
  std::thread thread_;
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_PREFETCH_H_
