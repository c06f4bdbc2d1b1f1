// The thread pool that runs request handlers and delivers results.
#ifndef LATTICE_SERVER_HTTP_WORKER_POOL_H_
#define LATTICE_SERVER_HTTP_WORKER_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lattice::server::http {

// A unit of work that may be posted repeatedly and never runs on two threads at once. Posting allocates
// nothing (the queues are intrusive), so it cannot fail.
class Work {
 public:
  virtual ~Work() = default;
  // An exception terminates the program.
  virtual void Run() noexcept = 0;

 private:
  friend class WorkerPool;
  enum class State { kIdle, kQueued, kRunning, kRunningAndQueued };
  State state_ = State::kIdle;
  std::shared_ptr<Work> next_;
};

// Runs two kinds of work: requests, which may take long, and deliveries, which have priority. One thread is
// always reserved for deliveries, so that no stream waits while another client's long prompt is parsed.
class WorkerPool {
 public:
  // Needs at least two threads. Throws Error when they cannot be started.
  explicit WorkerPool(int threads);
  // Finishes everything that was posted.
  ~WorkerPool();

  // Posts a delivery: the work runs at least once after this call begins.
  void Deliver(std::shared_ptr<Work> work) noexcept;
  // Posts a request. Returns false, and does nothing, when `most_waiting` requests are waiting already.
  bool Request(std::shared_ptr<Work> work, int64_t most_waiting) noexcept;

  // Whether nothing is posted or running, and everything that has run is destroyed.
  bool Idle();

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
  int64_t busy_ = 0;    // threads that are running requests
  int64_t active_ = 0;  // threads that hold a work, also one that has run and is being destroyed
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lattice::server::http

#endif  // LATTICE_SERVER_HTTP_WORKER_POOL_H_
