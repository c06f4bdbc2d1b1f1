// A task while the scheduler runs it: decides what to feed next, and samples from the logits.
#ifndef LATTICE_SERVER_ENGINE_SEQUENCE_H_
#define LATTICE_SERVER_ENGINE_SEQUENCE_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/engine.h"
#include "runtime/prefix_cache.h"
#include "server/engine/job.h"
#include "server/engine/memory_trace.h"
#include "server/engine/served_model.h"
#include "server/engine/server_metrics.h"
#include "server/engine/shown_text.h"
#include "text/grammar/token_constraint.h"

namespace lattice::server {

// What all sequences of a server use; must outlive them.
struct SequenceContext {
  const ServedModel& served;
  runtime::PrefixCache& cache;
  Metrics& metrics;
  const text::grammar::TokenTable& tokens;
};

// Used by the engine's thread only.
//
// A prompt is prefilled in pieces that end at multiples of kBlock and before its last token; the states there
// go into the prefix cache. If the conversation outlives the sequence, it reads all sampled tokens that
// belong to the answer, and is rewound over those of a stop text.
class Sequence {
 public:
  static constexpr int64_t kBlock = 256;

  // `index` is the task's index in its job.
  Sequence(const SequenceContext& context, Task task, int64_t index, std::shared_ptr<Job> job);

  Job& job() const { return *job_; }
  bool done() const { return done_; }
  // Ends the job because this sequence failed. Marks the conversation as damaged.
  void Fail(std::exception_ptr reason) noexcept;
  int64_t state_bytes = 0;  // as counted by the scheduler
  // Adds a sequence with the same prompt, which starts from a fork of this one's state after the prompt.
  void AddFollower(std::shared_ptr<Sequence> follower);

  // The next feed, with at most `room` tokens if it is part of a prompt; nothing when there is nothing to
  // run. The feed refers to this object until Consume.
  std::optional<runtime::Feed> Plan(int64_t room);
  // Processes the logits of the feed that Plan returned last.
  void Consume(std::span<const float> logits);

 private:
  // The state before a possible stop text, to rewind to when the stop text is complete.
  struct StopCheckpoint {
    runtime::Snapshot state;
    std::vector<float> logits;
    size_t chosen = 0;  // sampled tokens that the state has read
  };

  void Begin();
  void Adopt(const Sequence& leader, std::span<const float> logits);
  std::optional<runtime::Feed> FeedOf(std::span<const int32_t> tokens, runtime::Want want);
  void AfterPrompt(std::span<const float> logits);
  void PushPromptRecords(std::span<const float> logits);
  void Choose(std::span<const float> logits);
  TokenRecord RecordOf(int32_t id, std::span<const float> logits) const;
  void SaveStopCheckpoint(std::span<const float> logits);
  void RewindStopText();
  void PushRecords(int64_t certain);
  void Finish(const char* reason, std::span<const float> logits);
  void CacheState();
  void ReportMidway();
  bool Ends(int32_t id) const;
  std::span<const float> TokenizerLogits(std::span<const float> logits) const;

  const SequenceContext context_;
  Task task_;
  const int64_t index_;
  const std::shared_ptr<Job> job_;
  std::vector<std::shared_ptr<Sequence>> followers_;
  const bool kept_;  // the conversation outlives the sequence: it belongs to a session
  bool follows_ = false, begun_ = false, done_ = false;

  std::shared_ptr<Conversation> conversation_;
  std::optional<MemoryTrace> trace_;
  std::optional<text::grammar::TokenConstraint> constraint_;
  std::vector<double> hidden_sum_;
  runtime::Sampler sampler_;
  ShownText shown_;
  std::span<const int32_t> fed_;  // tokens of the last feed
  size_t prompt_at_ = 0;          // prompt tokens that have been read
  int64_t cached_ = 0;
  std::vector<float> last_logits_;    // after the last prompt token read: the log-probability of the next
  std::vector<int32_t> chosen_;       // all sampled tokens, including those of a stop text
  std::vector<TokenRecord> pending_;  // records of sampled tokens, not pushed to the job yet
  size_t read_ = 0;                   // how many of chosen_ the conversation has read
  size_t pushed_ = 0;                 // how many of chosen_ have been pushed to the job
  size_t kept_tokens_ = 0;            // how many of chosen_ belong to the answer, once the reason is known
  const char* reason_ = nullptr;
  std::optional<StopCheckpoint> stop_checkpoint_;
  std::optional<Clock::time_point> last_token_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SEQUENCE_H_
