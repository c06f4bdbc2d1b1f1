// Continuous batching: admission control, fair choice of what runs next, and the loop that steps all running
// sequences as one batch.
#include "server/engine/scheduler.h"

#include <algorithm>

#include "base/error.h"

namespace lattice::server {
namespace {

// How long to pause when every running sequence waits for a slow client.
constexpr std::chrono::milliseconds kClientsBehind{2};

ApiError Stopping() { return ApiError(503, "the server is shutting down", "", "shutting_down"); }
ApiError Expired() { return ApiError(503, "the request took longer than the server allows", "", "timeout"); }

int64_t MiB(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

Scheduler::Scheduler(const SequenceContext& context, const SchedulerLimits& limits, int threads)
    : context_(context),
      limits_(limits),
      cost_(context.served),
      stopping_error_(std::make_exception_ptr(Stopping())),
      expired_error_(std::make_exception_ptr(Expired())),
      engine_(context.served.model, threads) {
  feeds_.reserve(static_cast<size_t>(limits.running));
  fed_.reserve(static_cast<size_t>(limits.running));
  try {
    thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error& error) {
    Fail("[serve] the system gives no more threads (", error.what(), "); raise the limit on processes");
  }
}

Scheduler::~Scheduler() { Stop(Clock::now()); }

bool Scheduler::Busy() const {
  const std::lock_guard lock(mutex_);
  return queued_ >= limits_.Places();
}

// The state of a session is not counted here but in the session store.
int64_t Scheduler::BytesOf(const Task& task) const {
  if (task.conversation != nullptr) return 0;
  return cost_.Bytes(static_cast<int64_t>(task.prompt.size()) + task.max_tokens);
}

void Scheduler::CheckRoom(const std::vector<Task>& tasks, ClientId client, int64_t bytes) {
  const auto count = static_cast<int64_t>(tasks.size());
  if (bytes > limits_.bytes) {
    throw ApiError(400,
                   StrCat("the states of ", count, " texts of the length asked for could take ", MiB(bytes),
                          " MiB; at most ", MiB(limits_.bytes), " are given. Ask for fewer or shorter texts"),
                   "max_tokens", "too_large");
  }
  const auto known = shares_.find(client);
  const int64_t own = known == shares_.end() ? 0 : known->second.queued;
  const bool full = queued_ + count > limits_.Places() || bytes_ + bytes > limits_.bytes ||
                    (count > 1 && queued_many_ + count > limits_.ManyPlaces());
  const bool greedy = limits_.client > 0 && own + count > limits_.client;
  if (!full && !greedy) return;
  ++context_.metrics.rejected;
  if (!full)
    throw ApiError(
        429,
        StrCat("this client has ", own, " texts here already; at most ", limits_.client, " are made for one"),
        "", "overloaded");
  throw ApiError(429, StrCat("the server is busy with ", queued_, " sequences; try again in a moment"), "",
                 "overloaded");
}

void Scheduler::Submit(const std::shared_ptr<Job>& job, std::vector<Task> tasks) {
  int64_t bytes = 0;
  for (const Task& task : tasks) bytes += BytesOf(task);
  const auto count = static_cast<int64_t>(tasks.size());
  const ClientId client = job->client();
  {
    // Checked a first time before memory is allocated for the sequences.
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Stopping();
    CheckRoom(tasks, client, bytes);
  }
  Sequences sequences;
  std::vector<Sequence*> leaders;
  for (Task& task : tasks) {
    const int64_t leader = task.same_prompt_as, needed = BytesOf(task);
    const auto index = static_cast<int64_t>(sequences.size());
    sequences.push_back(std::make_shared<Sequence>(context_, std::move(task), index, job));
    sequences.back()->state_bytes = needed;
    leaders.push_back(sequences.back().get());
    if (leader >= 0) leaders[static_cast<size_t>(leader)]->AddFollower(sequences.back());
  }
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Stopping();
  CheckRoom(tasks, client, bytes);
  shares_[client].queued += count;
  queued_ += count;
  if (job->many()) queued_many_ += count;
  bytes_ += bytes;
  context_.metrics.waiting += count;
  waiting_.splice(waiting_.end(), sequences);
  changed_.notify_all();
}

void Scheduler::Stop(Clock::time_point deadline) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_at_ = deadline;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Scheduler::Loop() {
  while (Admit()) {
    DropEnded();
    if (Step() || running_.empty()) continue;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kClientsBehind);
  }
}

// Fair choice: among the sequences that may run, the oldest of the client with the fewest running sequences.
Scheduler::Sequences::iterator Scheduler::NextToRun() {
  auto best = waiting_.end();
  int64_t least = 0;
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    const Job& job = (*at)->job();
    if (job.many() && running_many_ >= limits_.ManyRunning()) continue;
    const int64_t own = shares_.find(job.client())->second.running;
    if (limits_.client > 0 && own >= limits_.ManyRunning()) continue;
    if (best == waiting_.end() || own < least) best = at, least = own;
    if (shares_.size() == 1) break;
  }
  return best;
}

bool Scheduler::Admit() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_.empty() || !running_.empty() || stopping_; });
  while (static_cast<int64_t>(running_.size()) < limits_.running) {
    const auto next = NextToRun();
    if (next == waiting_.end()) break;
    const Job& job = (*next)->job();
    ++shares_.find(job.client())->second.running;
    context_.metrics.queue_seconds.Add(std::chrono::duration<double>(Clock::now() - job.created()).count());
    if (job.many()) ++running_many_;
    running_.splice(running_.end(), waiting_, next);
    --context_.metrics.waiting;
    ++context_.metrics.running;
  }
  if (stopping_ && Clock::now() >= stop_at_) {
    for (const Sequences* all : {&running_, &waiting_}) {
      for (const auto& sequence : *all) sequence->job().Fail(stopping_error_);
    }
  }
  return !stopping_ || !running_.empty() || !waiting_.empty();
}

void Scheduler::DropEnded() {
  const std::lock_guard lock(mutex_);
  const int64_t from_running = Drop(running_, true), from_waiting = Drop(waiting_, false);
  context_.metrics.running -= from_running;
  context_.metrics.waiting -= from_waiting;
}

int64_t Scheduler::Drop(Sequences& from, bool running) {
  const Clock::time_point now = Clock::now();
  const auto ended = [&](const std::shared_ptr<Sequence>& sequence) {
    Job& job = sequence->job();
    if (!sequence->done() && !job.failed() && now >= job.deadline()) {
      ++context_.metrics.expired;
      job.Fail(expired_error_);
    }
    if (!sequence->done() && !job.failed()) return false;
    --queued_;
    bytes_ -= sequence->state_bytes;
    if (job.many()) --queued_many_;
    if (job.many() && running) --running_many_;
    const auto share = shares_.find(job.client());
    if (running) --share->second.running;
    if (--share->second.queued == 0) shares_.erase(share);
    job.Release();
    return true;
  };
  return static_cast<int64_t>(std::erase_if(from, ended));
}

// Runs one batch; false when there was nothing to do.
bool Scheduler::Step() {
  feeds_.clear();
  fed_.clear();
  int64_t room = limits_.prompt_block;
  bool finished = false;
  for (const auto& sequence : running_) {
    if (sequence->job().failed() || sequence->job().Full()) continue;
    try {
      std::optional<runtime::Feed> feed = sequence->Plan(room);
      finished |= sequence->done();
      if (!feed) continue;
      if (feed->tokens.size() > 1) room -= static_cast<int64_t>(feed->tokens.size());
      feeds_.push_back(*feed);
      fed_.push_back(sequence.get());
    } catch (const std::exception&) {
      sequence->Fail(std::current_exception());
    }
  }
  if (feeds_.empty()) return finished;
  try {
    engine_.Run(feeds_);
  } catch (const std::exception&) {
    for (Sequence* sequence : fed_) sequence->Fail(std::current_exception());
    return true;
  }
  ++context_.metrics.steps;
  for (const runtime::Feed& feed : feeds_) context_.metrics.rows += static_cast<int64_t>(feed.tokens.size());
  for (size_t i = 0; i < fed_.size(); ++i) {
    try {
      fed_[i]->Consume(engine_.Logits(i));
    } catch (const std::exception&) {
      fed_[i]->Fail(std::current_exception());
    }
  }
  return true;
}

}  // namespace lattice::server
