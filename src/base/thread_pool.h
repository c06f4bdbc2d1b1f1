// A thread pool for short parallel loops: a step of a model has a hundred of them, microseconds each, so an
// idle thread spins for a moment before it sleeps.
#ifndef LATTICE_BASE_THREAD_POOL_H_
#define LATTICE_BASE_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace lattice {

// One thread at a time can run a loop; a second one waits for the first. The work must not throw and must not
// use the pool itself.
class ThreadPool {
 public:
  // `threads` counts the caller: 1 makes no thread. 0: one per core this process may use.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(first, last) for ranges of at most `grain` that together are [0, count), on all threads, and
  // returns when all are done. Any thread may get any range, so results must not depend on it.
  template <typename Work>
  void For(int64_t count, int64_t grain, Work&& work) {
    if (count <= 0) return;
    if (workers_.empty() || count <= grain) {
      for (int64_t first = 0; first < count; first += grain)
        work(first, first + grain < count ? first + grain : count);
      return;
    }
    using Plain = std::remove_reference_t<Work>;
    Run({[](void* context, int64_t first, int64_t last) { (*static_cast<Plain*>(context))(first, last); },
         const_cast<std::remove_const_t<Plain>*>(&work), count, grain});
  }

 private:
  struct Job {
    void (*call)(void* context, int64_t first, int64_t last) = nullptr;
    void* context = nullptr;
    int64_t count = 0, grain = 1;
  };

  void Run(const Job& job);
  void Work();
  bool Join();
  void Loop();

  std::mutex callers_;
  Job job_;
  alignas(64) std::atomic<int64_t> next_{0};    // first index of the job that no thread has taken
  alignas(64) std::atomic<uint32_t> round_{0};  // counts the jobs; idle workers wait for it to change
  // The number of workers in the round, plus kOpen while more may join. The caller waits only for those that
  // joined, so a worker whose core is busy with another program delays nobody.
  static constexpr int kOpen = 1 << 16;
  alignas(64) std::atomic<int> joined_{0};
  std::atomic<int> asleep_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// Cores this process may run on.
int AvailableCores();

}  // namespace lattice

#endif  // LATTICE_BASE_THREAD_POOL_H_
