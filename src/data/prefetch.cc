// A thread that reads the batches of the next steps ahead.
#include "data/prefetch.h"

#include <chrono>
#include <csignal>
#include <utility>

namespace lattice::data {
namespace {

constexpr size_t kDepth = 2;

}  // namespace

Prefetch::Prefetch(const Batches& batches) : Prefetch(batches, 0, batches.rows()) {}

Prefetch::Prefetch(const Batches& batches, int64_t first, int64_t count)
    : batches_(batches), first_(first), count_(count), thread_([this] { Loop(); }) {}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::vector<int64_t> Prefetch::Take(int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const int64_t expected = ready_.empty() ? next_ : ready_.front().step;
  if (expected != step) {
    ready_.clear();
    next_ = step;
    ++generation_;
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Ready front = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (front.error) std::rethrow_exception(front.error);
  return std::move(front.tokens);
}

void Prefetch::Loop() {
  // Signals are handled by the thread that trains.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);

  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || (next_ >= 0 && ready_.size() < kDepth); });
    if (closing_) return;
    Ready batch = {next_, {}, {}};
    const int64_t turn = generation_;
    lock.unlock();
    try {
      batch.tokens.resize(static_cast<size_t>(count_ * (batches_.seq_len() + 1)));
      batches_.Read(batch.step, first_, count_, batch.tokens);
    } catch (...) {
      batch.error = std::current_exception();
    }
    lock.lock();
    if (turn != generation_) continue;
    next_ = batch.step + 1;
    ready_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

}  // namespace lattice::data
