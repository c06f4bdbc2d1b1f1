// The one thread that computes: it takes the next token of every running request and a piece of the prompts
// that came in, and runs them as one batch.
#ifndef LATTICE_SERVER_ENGINE_SCHEDULER_H_
#define LATTICE_SERVER_ENGINE_SCHEDULER_H_

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/engine.h"
#include "server/engine/job.h"
#include "server/engine/sequence.h"
#include "server/engine/state_cost.h"

namespace lattice::server {

struct SchedulerLimits {
  int64_t running = 256;       // sequences in one batch
  int64_t waiting = 256;       // sequences that may wait for a place
  int64_t prompt_block = 256;  // tokens of prompts in one step, so that running texts do not stand still
  int64_t client = 0;          // sequences of one client, running and waiting; 0: as many as there may be
  int64_t bytes = int64_t{2} << 30;  // of the states that all sequences may come to need

  int64_t Places() const { return running + waiting; }
  // Requests for several texts leave a quarter of the places, and of the batch, to requests for one.
  int64_t ManyPlaces() const { return Places() - Places() / 4; }
  int64_t ManyRunning() const { return running - running / 4; }
};

// Submit and the figures may be called from any thread. Results do not depend on what else is running.
class Scheduler {
 public:
  // Throws Error when the system gives no threads.
  Scheduler(const SequenceWorld& world, const SchedulerLimits& limits, int threads);
  ~Scheduler();

  // Queues the tasks of one request, each as a sequence. Throws ApiError: 429 when there is no room, 503 when
  // the server is stopping, 400 for what would not fit into an empty server.
  void Submit(const std::shared_ptr<Job>& job, std::vector<Task> tasks);
  // No room for a request of one task.
  bool Busy() const;

  // Takes no more jobs; gives the others until `deadline`, then ends them with 503. Returns when all are
  // done.
  void Stop(Clock::time_point deadline);

 private:
  using Sequences = std::list<std::shared_ptr<Sequence>>;
  // What a client has here.
  struct Share {
    int64_t queued = 0, running = 0;
  };

  void Loop();
  // Moves what waits to what runs; false when the thread is to end.
  bool Admit();
  Sequences::iterator NextToRun();
  void DropEnded();
  int64_t Drop(Sequences& from, bool running);
  bool Step();
  void CheckRoom(const std::vector<Task>& tasks, ClientId client, int64_t bytes);
  int64_t BytesOf(const Task& task) const;

  const SequenceWorld world_;
  const SchedulerLimits limits_;
  const StateCost cost_;
  const std::exception_ptr stopping_error_, expired_error_;  // made before memory runs out
  runtime::Engine engine_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Sequences waiting_;
  int64_t queued_ = 0;       // waiting_ and running_ together
  int64_t queued_many_ = 0;  // of requests for several texts
  int64_t bytes_ = 0;        // that all may come to need
  std::map<ClientId, Share> shares_;
  bool stopping_ = false;
  Clock::time_point stop_at_;

  // The thread's own.
  Sequences running_;
  int64_t running_many_ = 0;
  std::vector<runtime::Feed> feeds_;
  std::vector<Sequence*> fed_;
  std::thread thread_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SCHEDULER_H_
