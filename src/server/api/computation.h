// A request that waits for the engine without holding a thread.
#ifndef LATTICE_SERVER_API_COMPUTATION_H_
#define LATTICE_SERVER_API_COMPUTATION_H_

#include <exception>
#include <memory>
#include <vector>

#include "server/api/call.h"
#include "server/engine/job.h"
#include "server/engine/scheduler.h"
#include "server/engine/server_metrics.h"

namespace lattice::server {

// Runs on a worker whenever the engine has made something, the client has taken something, or has hung up.
class Computation : public http::Work,
                    public http::ReplyListener,
                    public JobListener,
                    public std::enable_shared_from_this<Computation> {
 public:
  // The workers and the metrics must outlive the object.
  Computation(std::shared_ptr<Call> call, http::WorkerPool& workers, Metrics& metrics)
      : call_(std::move(call)), workers_(workers), metrics_(metrics) {}

  // Hands the tasks to the scheduler, which then holds this object until it is done. Throws what Submit does.
  void Start(Scheduler& scheduler, std::vector<Task> tasks, Clock::time_point deadline);

  void Run() noexcept override;
  void JobChanged() noexcept override { workers_.Deliver(shared_from_this()); }
  void ReplyChanged() noexcept override { workers_.Deliver(shared_from_this()); }

 protected:
  // Before the first event.
  virtual void OnStart() {}
  virtual void OnEvent(Event event) = 0;
  // The client is to take something first.
  virtual bool Full() { return false; }
  // The engine has let go. Exactly one of the two is called, and answers; the second also when the first
  // throws.
  virtual void OnEnd() = 0;
  virtual void OnFailure(const std::exception_ptr& error) = 0;

  Call& call() { return *call_; }

 private:
  void TakeEvents();
  void Finish() noexcept;

  const std::shared_ptr<Call> call_;
  http::WorkerPool& workers_;
  Metrics& metrics_;
  std::shared_ptr<Job> job_;
  bool started_ = false, broken_ = false, done_ = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_COMPUTATION_H_
