// A request as the engine sees it: its tasks, and the queue of events from the engine to whoever answers.
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
#include "text/grammar/grammar.h"

namespace lattice::server {

using Clock = std::chrono::steady_clock;

// One sequence to prefill and to continue.
struct Task {
  // The conversation that the tokens are appended to; null: a temporary one. The caller makes sure that
  // nobody else uses it.
  std::shared_ptr<Conversation> conversation;
  // May be empty only when the conversation's logits are known.
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  runtime::SamplerOptions sampler;
  std::vector<std::string> stops;
  bool at_start = false;  // the first sampled token begins a text
  int64_t logprobs = -1;  // report this many of the most likely tokens; -1: no log-probabilities at all
  bool prompt_logprobs = false;  // report them for the prompt's tokens too
  bool trace = false;            // report what each token did to the memory (not for attention)
  int64_t midway_tokens = 0;  // report the conversation's state whenever it has read so many more; 0: never
  bool embed = false;         // report the mean of the last hidden states of the prompt
  int32_t also_ends = -1;     // a token that ends the text, besides the end of text
  std::shared_ptr<const text::grammar::Grammar> grammar;  // null: the text is free
  int64_t same_prompt_as = -1;  // an earlier task of the job with the same prompt; this one forks its state
};

struct TokenRecord {
  int32_t id = 0;
  bool prompt = false;            // from the prompt, not sampled
  std::optional<double> logprob;  // none for the first token of a text
  std::vector<runtime::TokenLogProb> top;
  std::shared_ptr<const TokenMemory> memory;
};

struct Event {
  int64_t task = 0;
  std::vector<TokenRecord> tokens;
  std::string text;              // of sampled tokens
  const char* reason = nullptr;  // "stop" or "length" in the last event of the task
  // Set in the last event:
  int64_t prompt_tokens = 0, cached_tokens = 0, chosen_tokens = 0;
  std::vector<float> embedding;
  std::shared_ptr<const Conversation> midway;  // the state at this moment, to be stored
};

// Notified when a job has an event or has ended.
class JobListener {
 public:
  virtual ~JobListener() = default;
  // Called on the engine's thread: must be quick.
  virtual void JobChanged() noexcept = 0;
};

// Identifies a client for the limits per client.
using ClientId = uint64_t;

// The engine's thread pushes events, one other thread at a time takes them. The queue is bounded: the engine
// skips a job that is full until events are taken, so a slow client holds up nobody else.
class Job {
 public:
  // Holds the listener until the engine has released all tasks.
  Job(size_t tasks, ClientId client, Clock::time_point deadline, std::shared_ptr<JobListener> listener);

  // The client's side. Take returns the next event if there is one; it does not wait.
  std::optional<Event> Take();
  // The engine has released all tasks and all events have been taken.
  bool Finished() const;
  // Why the job was ended early; null if it was not.
  std::exception_ptr error() const;

  // Drops the listener of a job that the scheduler refused.
  void Disown() noexcept;

  // Both sides: ends the job early. The first reason counts. Allocates nothing.
  void Fail(std::exception_ptr reason) noexcept;

  // The engine's side.
  bool Full() const;
  void Push(Event event);
  bool failed() const { return failed_; }
  ClientId client() const { return client_; }
  // Whether the job has several tasks.
  bool many() const { return many_; }
  Clock::time_point deadline() const { return deadline_; }
  Clock::time_point created() const { return created_; }
  // The engine is done with one of the tasks.
  void Release() noexcept;

 private:
  const ClientId client_;
  const bool many_;
  const Clock::time_point created_ = Clock::now(), deadline_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  size_t tokens_ = 0;  // number of tokens in events_
  size_t held_;        // tasks that the engine has not released yet
  std::exception_ptr error_;
  std::shared_ptr<JobListener> listener_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_JOB_H_
