// The thread pool: workers spin, then sleep, until a round begins, and join it unless it is over.
#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "base/error.h"

namespace lattice {
namespace {

// About a millisecond: longer than the pauses inside a step, shorter than anyone notices.
constexpr int kSpins = 40000;
// A few microseconds: with more threads than free cores, the thread that is waited for gets a core.
constexpr int kSpinsBetweenYields = 256;
constexpr int kMaxThreads = 1024;

void Pause(int spins) {
  if (spins % kSpinsBetweenYields == kSpinsBetweenYields - 1) std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

#ifdef __EMSCRIPTEN__
int AvailableCores() { return 1; }  // a page has one thread
#else
int AvailableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}
#endif

ThreadPool::ThreadPool(int threads) {
  Check(threads >= 0 && threads <= kMaxThreads, "[threads] ", threads, " threads; expected 0 (all cores) to ",
        kMaxThreads);
  const int count = threads == 0 ? AvailableCores() : threads;
  for (int i = 1; i < count; ++i) workers_.emplace_back([this] { Loop(); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Takes ranges of the job until none is left.
void ThreadPool::Work() {
  const Job job = job_;
  for (int64_t first = next_.fetch_add(job.grain); first < job.count; first = next_.fetch_add(job.grain)) {
    job.call(job.context, first, std::min(job.count, first + job.grain));
  }
}

void ThreadPool::Run(const Job& job) {
  const std::lock_guard lock(callers_);
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  joined_.store(kOpen, std::memory_order_release);
  ++round_;
  if (asleep_ > 0) round_.notify_all();
  Work();
  joined_.fetch_and(~kOpen, std::memory_order_relaxed);
  for (int spins = 0; joined_.load(std::memory_order_acquire) > 0; ++spins) Pause(spins);
}

// Joins the round as a worker; false when it is closed.
bool ThreadPool::Join() {
  int joined = joined_.load(std::memory_order_relaxed);
  while ((joined & kOpen) != 0) {
    if (joined_.compare_exchange_weak(joined, joined + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void ThreadPool::Loop() {
  uint32_t seen = 0;
  while (true) {
    for (int spins = 0; round_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins)
      Pause(spins);
    if (round_.load(std::memory_order_acquire) == seen) {
      ++asleep_;
      round_.wait(seen);
      --asleep_;
    }
    if (stop_) return;
    const uint32_t now = round_.load(std::memory_order_acquire);
    if (now == seen) continue;
    seen = now;
    if (!Join()) continue;
    Work();
    joined_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace lattice
