// The one thread that computes: it takes the next token of every running request and a piece of the prompts
// that came in, and runs them as one batch.
#ifndef LATTICE_SERVER_SCHEDULER_H_
#define LATTICE_SERVER_SCHEDULER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/engine.h"
#include "server/job.h"
#include "server/sequence.h"

namespace lattice::server {

struct SchedulerLimits {
  int64_t running = 256;       // sequences in one batch
  int64_t waiting = 256;       // sequences that may wait for a place
  int64_t prompt_block = 256;  // tokens of prompts in one step, so that running texts do not stand still
};

// Submit and the figures may be called from any thread. Results do not depend on what else is running.
class Scheduler {
 public:
  Scheduler(const SequenceWorld& world, const SchedulerLimits& limits, int threads);
  ~Scheduler();

  // Queues the tasks of one request. Throws ApiError: 429 when there is no room, 503 when the server is
  // stopping. `client` and `deadline` as for Job.
  std::shared_ptr<Job> Submit(std::vector<Task> tasks, int client, Clock::time_point deadline);
  // No room for a request of one task.
  bool Busy() const;

  // Takes no more jobs; gives the others until `deadline`, then ends them with 503. Returns when all are
  // done.
  void Stop(Clock::time_point deadline);

 private:
  using Sequences = std::list<std::shared_ptr<Sequence>>;

  void Loop();
  // Moves what waits to what runs; false when the thread is to end.
  bool Admit();
  void DropEnded();
  void FindHangUps();
  bool Step();
  void Fail(Sequence& sequence, const std::exception& error);

  const SequenceWorld world_;
  const SchedulerLimits limits_;
  runtime::Engine engine_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Sequences waiting_;
  int64_t queued_ = 0;  // waiting_ and running_ together
  bool stopping_ = false;
  Clock::time_point stop_at_;

  Sequences running_;  // the thread's own
  std::thread thread_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_SCHEDULER_H_
