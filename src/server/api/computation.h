// A request that waits for the engine without occupying a thread.
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

// What computations use; must outlive them.
struct ComputationContext {
  http::WorkerPool& workers;  // those that may wait for the store, for a computation that has a session
  Metrics& metrics;
  Accounts& accounts;
};

// Runs on a worker whenever the engine has produced an event, the client has taken bytes, or has hung up.
class Computation : public http::Work,
                    public http::ReplyListener,
                    public JobListener,
                    public std::enable_shared_from_this<Computation> {
 public:
  Computation(std::shared_ptr<Call> call, const ComputationContext& context)
      : call_(std::move(call)), context_(context) {}

  // Submits the tasks to the scheduler, which holds this object until they are done. Throws what Submit
  // throws.
  void Start(Scheduler& scheduler, std::vector<Task> tasks, Clock::time_point deadline);

  void Run() noexcept override;
  void JobChanged() noexcept override { context_.workers.Deliver(shared_from_this()); }
  void ReplyChanged() noexcept override { context_.workers.Deliver(shared_from_this()); }

 protected:
  // Called before the first event.
  virtual void OnStart() {}
  virtual void OnEvent(Event event) = 0;
  // Back-pressure: whether to wait until the client has taken bytes.
  virtual bool Full() { return false; }
  // Called once, when the engine is done; must answer the call. OnFailure is called if the job failed or
  // OnEnd has thrown.
  virtual void OnEnd() = 0;
  virtual void OnFailure(const std::exception_ptr& error) = 0;

  Call& call() { return *call_; }

 private:
  void TakeEvents();
  // Counts tokens for the account's quota and for the log.
  void CountChosen(const Event& event);
  void Finish() noexcept;

  const std::shared_ptr<Call> call_;
  const ComputationContext context_;
  std::shared_ptr<Job> job_;
  bool started_ = false, broken_ = false, done_ = false;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_COMPUTATION_H_
