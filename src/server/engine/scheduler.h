// The scheduler: one thread that batches continuously. Each step decodes one token of every running sequence
// and prefills a block of the new prompts.
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
  int64_t running = 256;             // sequences in one batch
  int64_t waiting = 256;             // sequences that wait for a place in the batch
  int64_t prompt_block = 256;        // prompt tokens per step, so that prefill does not stall decoding
  int64_t client = 0;                // sequences of one client, running and waiting; 0: no limit
  int64_t bytes = int64_t{2} << 30;  // of the states of all sequences at their longest

  int64_t Places() const { return running + waiting; }
  // Requests for several texts must leave a quarter of all places, and of the batch, to requests for one
  // text.
  int64_t ManyPlaces() const { return Places() - Places() / 4; }
  int64_t ManyRunning() const { return running - running / 4; }
};

// Submit and Busy may be called from any thread. Results do not depend on what else is running.
class Scheduler {
 public:
  // Throws Error when the thread cannot be started.
  Scheduler(const SequenceContext& context, const SchedulerLimits& limits, int threads);
  ~Scheduler();

  // Admission control: queues the tasks of one request, each as a sequence, or throws ApiError: 429 when
  // there is no room, 503 when the server is stopping, 400 for what would not even fit into an idle server.
  void Submit(const std::shared_ptr<Job>& job, std::vector<Task> tasks);
  // Whether there is no room even for one more task.
  bool Busy() const;

  // Accepts no more jobs; lets the others run until `deadline`, then fails them with 503. Returns when all
  // have ended.
  void Stop(Clock::time_point deadline);

 private:
  using Sequences = std::list<std::shared_ptr<Sequence>>;
  // The number of sequences of one client.
  struct Share {
    int64_t queued = 0, running = 0;
  };

  void Loop();
  // Moves waiting sequences into the batch; false when the thread should end.
  bool Admit();
  Sequences::iterator NextToRun();
  void DropEnded();
  int64_t Drop(Sequences& from, bool running);
  bool Step();
  void CheckRoom(const std::vector<Task>& tasks, ClientId client, int64_t bytes);
  int64_t BytesOf(const Task& task) const;

  const SequenceContext context_;
  const SchedulerLimits limits_;
  const StateCost cost_;
  const std::exception_ptr stopping_error_, expired_error_;  // made in advance: failing needs no memory
  runtime::Engine engine_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Sequences waiting_;
  int64_t queued_ = 0;       // waiting_ and running_ together
  int64_t queued_many_ = 0;  // those of requests for several texts
  int64_t bytes_ = 0;        // of all their states at their longest
  std::map<ClientId, Share> shares_;
  bool stopping_ = false;
  Clock::time_point stop_at_;

  // Used by the scheduler's thread only.
  Sequences running_;
  int64_t running_many_ = 0;
  std::vector<runtime::Feed> feeds_;
  std::vector<Sequence*> fed_;
  std::thread thread_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SCHEDULER_H_
