#include "server/scheduler.h"

#include <poll.h>

#include <algorithm>

#include "base/error.h"

namespace lattice::server {
namespace {

// How long to wait for clients when all of them are behind.
constexpr std::chrono::milliseconds kClientsBehind{2};

ApiError Stopping() { return ApiError(503, "the server is shutting down", "", "shutting_down"); }

}  // namespace

Scheduler::Scheduler(const SequenceWorld& world, const SchedulerLimits& limits, int threads)
    : world_(world), limits_(limits), engine_(world.served.model, threads), thread_([this] { Loop(); }) {}

Scheduler::~Scheduler() { Stop(Clock::now()); }

bool Scheduler::Busy() const {
  const std::lock_guard lock(mutex_);
  return queued_ >= limits_.running + limits_.waiting;
}

std::shared_ptr<Job> Scheduler::Submit(std::vector<Task> tasks, int client, Clock::time_point deadline) {
  const auto job = std::make_shared<Job>(tasks.size(), client, deadline);
  std::vector<std::shared_ptr<Sequence>> sequences;
  for (Task& task : tasks) {
    const int64_t leader = task.same_prompt_as;
    const auto index = static_cast<int64_t>(sequences.size());
    sequences.push_back(std::make_shared<Sequence>(world_, std::move(task), index, job));
    if (leader >= 0) sequences[static_cast<size_t>(leader)]->AddFollower(sequences.back());
  }
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Stopping();
  const auto count = static_cast<int64_t>(sequences.size());
  if (queued_ + count > limits_.running + limits_.waiting) {
    ++world_.metrics.rejected;
    throw ApiError(429, StrCat("the server is busy with ", queued_, " sequences; try again in a moment"), "",
                   "overloaded");
  }
  queued_ += count;
  world_.metrics.waiting += count;
  waiting_.insert(waiting_.end(), sequences.begin(), sequences.end());
  changed_.notify_all();
  return job;
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
    FindHangUps();
    DropEnded();
    if (Step() || running_.empty()) continue;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kClientsBehind);
  }
}

bool Scheduler::Admit() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_.empty() || !running_.empty() || stopping_; });
  const int64_t room = limits_.running - static_cast<int64_t>(running_.size());
  const auto count = std::min<int64_t>(room, static_cast<int64_t>(waiting_.size()));
  const auto end = std::next(waiting_.begin(), count);
  running_.splice(running_.end(), waiting_, waiting_.begin(), end);
  world_.metrics.waiting -= count;
  world_.metrics.running += count;
  if (stopping_ && Clock::now() >= stop_at_) {
    for (const Sequences* all : {&running_, &waiting_}) {
      for (const auto& sequence : *all) sequence->job().Fail(Stopping());
    }
  }
  return !stopping_ || !running_.empty() || !waiting_.empty();
}

// A client that hangs up frees its places, also those in the queue.
void Scheduler::FindHangUps() {
  std::vector<pollfd> sockets;
  std::vector<Job*> jobs;
  const auto add = [&](const Sequences& all) {
    for (const auto& sequence : all) {
      Job& job = sequence->job();
      if (job.client() < 0 || (!jobs.empty() && jobs.back() == &job)) continue;
      sockets.push_back({job.client(), POLLRDHUP, 0});
      jobs.push_back(&job);
    }
  };
  const std::lock_guard lock(mutex_);
  add(running_);
  add(waiting_);
  if (sockets.empty() || ::poll(sockets.data(), sockets.size(), 0) <= 0) return;
  for (size_t i = 0; i < sockets.size(); ++i) {
    if ((sockets[i].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0 || jobs[i]->cancelled())
      continue;
    jobs[i]->Cancel();
    ++world_.metrics.disconnected;
  }
}

void Scheduler::DropEnded() {
  const Clock::time_point now = Clock::now();
  const auto ended = [&](const std::shared_ptr<Sequence>& sequence) {
    Job& job = sequence->job();
    if (!sequence->done() && !job.cancelled() && now >= job.deadline()) {
      ++world_.metrics.expired;
      job.Fail(ApiError(503, "the request took longer than the server allows", "", "timeout"));
    }
    if (!sequence->done() && !job.cancelled()) return false;
    job.Release();
    return true;
  };
  const std::lock_guard lock(mutex_);
  const auto from_running = static_cast<int64_t>(std::erase_if(running_, ended));
  const auto from_waiting = static_cast<int64_t>(std::erase_if(waiting_, ended));
  world_.metrics.running -= from_running;
  world_.metrics.waiting -= from_waiting;
  queued_ -= from_running + from_waiting;
}

void Scheduler::Fail(Sequence& sequence, const std::exception& error) {
  sequence.job().Fail(ApiError(500, StrCat("the model could not compute this request: ", error.what())));
}

// False when there was nothing to do.
bool Scheduler::Step() {
  std::vector<runtime::Feed> feeds;
  std::vector<Sequence*> fed;
  int64_t room = limits_.prompt_block;
  bool finished = false;
  for (const auto& sequence : running_) {
    if (sequence->job().cancelled() || sequence->job().Full()) continue;
    try {
      std::optional<runtime::Feed> feed = sequence->Plan(room);
      finished |= sequence->done();
      if (!feed) continue;
      if (feed->tokens.size() > 1) room -= static_cast<int64_t>(feed->tokens.size());
      feeds.push_back(*feed);
      fed.push_back(sequence.get());
    } catch (const std::exception& error) {
      Fail(*sequence, error);
    }
  }
  if (feeds.empty()) return finished;
  try {
    engine_.Run(feeds);
  } catch (const std::exception& error) {
    for (Sequence* sequence : fed) Fail(*sequence, error);
    return true;
  }
  ++world_.metrics.steps;
  for (const runtime::Feed& feed : feeds) world_.metrics.rows += static_cast<int64_t>(feed.tokens.size());
  for (size_t i = 0; i < fed.size(); ++i) {
    try {
      fed[i]->Consume(engine_.Logits(i));
    } catch (const std::exception& error) {
      Fail(*fed[i], error);
    }
  }
  return true;
}

}  // namespace lattice::server
