// Batches read ahead by a thread of their own, so that a step finds its tokens waiting.
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

// For one caller. The batches must outlive the object.
class Prefetch {
 public:
  explicit Prefetch(const Batches& batches);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // All rows of `step` as Batches::Read gives them, [rows, seq_len + 1]. Steps asked one after the other are
  // ready; another one is read now. Throws Error when reading fails.
  std::vector<int64_t> Take(int64_t step);

  // Seconds that Take() has spent waiting in all.
  double waited() const { return waited_; }

 private:
  struct Ready {
    int64_t step;
    std::vector<int64_t> tokens;
    std::exception_ptr error;
  };
  void Loop();

  const Batches& batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  int64_t next_ = -1;  // the step the thread reads next; -1: none yet
  int64_t turn_ = 0;   // changes with every seek: what was being read for an older turn is dropped
  bool closing_ = false;
  double waited_ = 0;
  std::thread thread_;
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_PREFETCH_H_
