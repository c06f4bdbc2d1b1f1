// A fixed number of threads that run what requests need.
#ifndef LATTICE_SERVER_HTTP_WORKER_POOL_H_
#define LATTICE_SERVER_HTTP_WORKER_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lattice::server::http {

// Something to be done, perhaps again and again, never by two threads at the same time. Posting it allocates
// nothing, so that it cannot fail.
class Work {
 public:
  virtual ~Work() = default;
  // An exception ends the program.
  virtual void Run() noexcept = 0;

 private:
  friend class WorkerPool;
  enum class State { kIdle, kQueued, kRunning, kRunningAndQueued };
  State state_ = State::kIdle;
  std::shared_ptr<Work> next_;
};

// Work of two kinds: requests, which may take long, and deliveries, which go first. One thread is always left
// to deliveries: a stream does not wait for somebody's long prompt to be parsed.
class WorkerPool {
 public:
  // Throws Error when the system gives no threads. At least two.
  explicit WorkerPool(int threads);
  // Runs what was posted.
  ~WorkerPool();

  // Runs the work at least once after this call begins.
  void Deliver(std::shared_ptr<Work> work) noexcept;
  // False when as many requests wait as may: nothing is done then.
  bool Request(std::shared_ptr<Work> work, int64_t most_waiting) noexcept;

  void Stop();

 private:
  struct Queue {
    std::shared_ptr<Work> first;
    Work* last = nullptr;
    int64_t size = 0;
    void Push(std::shared_ptr<Work> work);
    std::shared_ptr<Work> Pop();
  };

  void Loop();
  bool MayTakeRequest() const;

  const int64_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Queue deliveries_, requests_;
  int64_t busy_ = 0;  // threads that run requests
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_WORKER_POOL_H_
