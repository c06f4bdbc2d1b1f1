// A thread pool with two intrusive queues, of which deliveries have priority over requests.
#include "server/http/worker_pool.h"

#include <system_error>
#include <utility>

#include "base/error.h"

namespace lattice::server::http {

void WorkerPool::Queue::Push(std::shared_ptr<Work> work) {
  Work* const added = work.get();
  (last == nullptr ? first : last->next_) = std::move(work);
  last = added;
  ++size;
}

std::shared_ptr<Work> WorkerPool::Queue::Pop() {
  std::shared_ptr<Work> work = std::move(first);
  first = std::move(work->next_);
  if (first == nullptr) last = nullptr;
  --size;
  return work;
}

WorkerPool::WorkerPool(int threads) : count_(threads) {
  Check(threads >= 2, "[serve] ", threads, " workers; expected 2 or more");
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  } catch (const std::system_error& error) {
    Stop();
    Fail("[serve] the system gives no more threads (", error.what(), "); raise the limit on processes");
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::Deliver(std::shared_ptr<Work> work) noexcept {
  const std::lock_guard lock(mutex_);
  switch (work->state_) {
    case Work::State::kIdle:
      work->state_ = Work::State::kQueued;
      deliveries_.Push(std::move(work));
      changed_.notify_one();
      break;
    case Work::State::kRunning:
      work->state_ = Work::State::kRunningAndQueued;
      break;
    case Work::State::kQueued:
    case Work::State::kRunningAndQueued:
      break;
  }
}

bool WorkerPool::Request(std::shared_ptr<Work> work, int64_t most_waiting) noexcept {
  const std::lock_guard lock(mutex_);
  if (stop_ || requests_.size >= most_waiting) return false;
  work->state_ = Work::State::kQueued;
  requests_.Push(std::move(work));
  changed_.notify_one();
  return true;
}

bool WorkerPool::Idle() {
  const std::lock_guard lock(mutex_);
  return active_ == 0 && deliveries_.first == nullptr && requests_.first == nullptr;
}

bool WorkerPool::MayTakeRequest() const { return requests_.first != nullptr && busy_ + 1 < count_; }

void WorkerPool::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return deliveries_.first != nullptr || MayTakeRequest() || stop_; });
    const bool delivery = deliveries_.first != nullptr;
    if (!delivery && requests_.first == nullptr) return;
    std::shared_ptr<Work> work = delivery ? deliveries_.Pop() : requests_.Pop();
    work->state_ = Work::State::kRunning;
    if (!delivery) ++busy_;
    ++active_;
    lock.unlock();
    work->Run();
    lock.lock();
    if (!delivery) --busy_;
    const bool again = work->state_ == Work::State::kRunningAndQueued;
    work->state_ = again ? Work::State::kQueued : Work::State::kIdle;
    if (again) {
      deliveries_.Push(std::move(work));
    } else if (!delivery && MayTakeRequest()) {
      changed_.notify_one();
    }
    if (work != nullptr) {
      // Destroy outside the lock: the work may hold much memory, and its destructor may post something.
      lock.unlock();
      work.reset();
      lock.lock();
    }
    --active_;
  }
}

}  // namespace lattice::server::http
