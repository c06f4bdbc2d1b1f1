// A request as it stands between whoever answers it and the engine.
#ifndef LATTICE_SERVER_ENGINE_JOB_H_
#define LATTICE_SERVER_ENGINE_JOB_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sampler.h"
#include "server/engine/api_error.h"
#include "server/engine/conversation.h"
#include "server/engine/memory_trace.h"

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

// Is told that a job has an event, or has ended.
class JobListener {
 public:
  virtual ~JobListener() = default;
  // On the engine's thread: must be quick.
  virtual void JobChanged() noexcept = 0;
};

// Who sent a job, as far as its share of the server is concerned.
using ClientId = uint64_t;

// The engine's thread pushes, one other thread at a time takes. A job that is full is left alone by the
// engine until its events are taken: a slow client holds up nobody else.
class Job {
 public:
  // The listener lives until the engine has let go of the job.
  Job(size_t tasks, ClientId client, Clock::time_point deadline, std::shared_ptr<JobListener> listener);

  // The client's side. The next event, if there is one by now.
  std::optional<Event> Take();
  // The engine has let go of the job and nothing is left to take.
  bool Finished() const;
  // Why the job was ended early; null when it was not.
  std::exception_ptr error() const;

  // The engine did not take the job: the listener is let go.
  void Disown() noexcept;

  // Both sides: ends the job. The first reason counts. Allocates nothing.
  void Fail(std::exception_ptr reason) noexcept;

  // The engine's side.
  bool Full() const;
  void Push(Event event);
  bool failed() const { return failed_; }
  ClientId client() const { return client_; }
  // Several texts at once.
  bool many() const { return many_; }
  Clock::time_point deadline() const { return deadline_; }
  Clock::time_point created() const { return created_; }
  // One task is out of the engine's hands.
  void Release() noexcept;

 private:
  const ClientId client_;
  const bool many_;
  const Clock::time_point created_ = Clock::now(), deadline_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  size_t tokens_ = 0;  // in events_
  size_t held_;        // tasks that the engine has
  std::exception_ptr error_;
  std::shared_ptr<JobListener> listener_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_JOB_H_
