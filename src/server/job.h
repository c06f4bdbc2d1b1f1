// A request as it stands between the thread of its client and the engine's.
#ifndef LATTICE_SERVER_JOB_H_
#define LATTICE_SERVER_JOB_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sampler.h"
#include "server/api_error.h"
#include "server/conversation.h"
#include "server/memory_trace.h"

namespace lattice::server {

using Clock = std::chrono::steady_clock;

// One sequence to read and to continue.
struct Task {
  // Gets the tokens and keeps them; null: a new one that is dropped at the end. The caller makes sure that
  // nobody else uses it.
  std::shared_ptr<Conversation> conversation;
  // Read first. May be empty only when the conversation's logits are known.
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  runtime::SamplerOptions sampler;
  std::vector<std::string> stops;
  bool at_start = false;         // the first chosen token begins a text
  int64_t logprobs = -1;         // how many of the most likely to tell with each token; -1: not even its own
  bool prompt_logprobs = false;  // also for the prompt's tokens
  bool trace = false;            // tell what each token did to the memory (not for attention)
  int64_t same_prompt_as = -1;   // an earlier task of the job whose prompt, read alone, is this one's
};

struct TokenRecord {
  int32_t id = 0;
  bool prompt = false;            // was read, not chosen
  std::optional<double> logprob;  // none for the first token of a text
  std::vector<runtime::TokenLogProb> top;
  std::shared_ptr<const TokenMemory> memory;
};

struct Event {
  int64_t task = 0;
  std::vector<TokenRecord> tokens;
  std::string text;              // of chosen tokens
  const char* reason = nullptr;  // "stop" or "length" with the last event of the task
  // With the last event:
  int64_t prompt_tokens = 0, cached_tokens = 0, chosen_tokens = 0;
};

// The engine's thread pushes, the client's thread takes. A job that is full is left alone by the engine until
// its client has caught up: a slow client holds up nobody else.
class Job {
 public:
  // `client` is a socket to watch for a hang-up, or -1; it must stay open until WaitReleased returns.
  Job(size_t tasks, int client, Clock::time_point deadline);

  // The client's side. Next waits for an event; nothing comes after the last event of the last task. Throws
  // ApiError when the job was ended early, for the reason it names.
  std::optional<Event> Next();
  void Cancel() { cancelled_ = true; }
  // Until the engine has let go of the job.
  void WaitReleased();

  // The engine's side.
  bool Full() const;
  void Push(Event event);
  void Fail(const ApiError& error);
  bool cancelled() const { return cancelled_; }
  int client() const { return client_; }
  Clock::time_point deadline() const { return deadline_; }
  Clock::time_point created() const { return created_; }
  // One task is out of the engine's hands.
  void Release();

 private:
  const int client_;
  const Clock::time_point created_ = Clock::now(), deadline_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  size_t tokens_ = 0;  // in events_
  size_t unfinished_, held_;
  std::optional<ApiError> error_;
};

// A job as its client's thread holds it: going out of scope ends it.
class JobHandle {
 public:
  explicit JobHandle(std::shared_ptr<Job> job) : job_(std::move(job)) {}
  ~JobHandle() {
    job_->Cancel();
    job_->WaitReleased();
  }
  JobHandle(const JobHandle&) = delete;
  JobHandle& operator=(const JobHandle&) = delete;
  Job* operator->() const { return job_.get(); }

 private:
  std::shared_ptr<Job> job_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_JOB_H_
