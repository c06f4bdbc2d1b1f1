// One task in the engine's hands: what to feed next, and what becomes of the logits.
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

namespace lattice::server {

// What all sequences of a server share; must outlive them.
struct SequenceWorld {
  const ServedModel& served;
  runtime::PrefixCache& cache;
  Metrics& metrics;
};

// Used by the engine's thread only.
//
// A prompt is read in pieces that end at multiples of kBlock and before its last token; the state there goes
// into the prefix cache. Every token that was chosen and belongs to the answer is read by a conversation that
// is kept; what belongs to a stop text is taken back.
class Sequence {
 public:
  static constexpr int64_t kBlock = 256;

  // `index` is the task's in its job.
  Sequence(const SequenceWorld& world, Task task, int64_t index, std::shared_ptr<Job> job);

  Job& job() const { return *job_; }
  bool done() const { return done_; }
  // Ends the job: this sequence cannot go on. A conversation that is kept is not to be trusted any more.
  void Fail(std::exception_ptr reason) noexcept;
  int64_t state_bytes = 0;  // as the scheduler counts them
  // Will start from what `this` has read once its prompt is done.
  void AddFollower(std::shared_ptr<Sequence> follower);

  // The next feed, with at most `room` tokens when it is of a prompt; nothing when there is none now. The
  // feed refers to this object until Consume.
  std::optional<runtime::Feed> Plan(int64_t room);
  // The engine has run the last feed; these are its logits.
  void Consume(std::span<const float> logits);

 private:
  // Where the conversation goes back to when a stop text turns out to be complete.
  struct Mark {
    runtime::Snapshot state;
    std::vector<float> logits;
    size_t chosen = 0;  // tokens of the answer that the state has read
  };

  void Begin();
  void Adopt(const Sequence& leader, std::span<const float> logits);
  std::optional<runtime::Feed> FeedOf(std::span<const int32_t> tokens, runtime::Want want);
  void AfterPrompt(std::span<const float> logits);
  void TellPrompt(std::span<const float> logits);
  void Choose(std::span<const float> logits);
  TokenRecord RecordOf(int32_t id, std::span<const float> logits) const;
  void MarkStop(std::span<const float> logits);
  void TakeBackStop();
  void Tell(int64_t certain);
  void Finish(const char* reason, std::span<const float> logits);
  void Remember();
  std::span<const float> Known(std::span<const float> logits) const;

  const SequenceWorld world_;
  Task task_;
  const int64_t index_;
  const std::shared_ptr<Job> job_;
  std::vector<std::shared_ptr<Sequence>> followers_;
  const bool kept_;  // the conversation outlives the sequence
  bool follows_ = false, begun_ = false, done_ = false;

  std::shared_ptr<Conversation> conversation_;
  std::optional<MemoryTrace> trace_;
  runtime::Sampler sampler_;
  ShownText shown_;
  std::span<const int32_t> fed_;  // by the last feed
  size_t prompt_at_ = 0;          // tokens of the prompt that have been read
  int64_t cached_ = 0;
  std::vector<float> last_logits_;   // of the prompt token before the next, for its log-probability
  std::vector<int32_t> chosen_;      // all, with those of a stop text
  std::vector<TokenRecord> untold_;  // chosen, not told yet
  size_t read_ = 0;                  // of chosen_, by the conversation
  size_t told_ = 0;
  size_t kept_tokens_ = 0;  // of chosen_, once the reason is known
  const char* reason_ = nullptr;
  std::optional<Mark> mark_;
  std::optional<Clock::time_point> last_token_;
};

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SEQUENCE_H_
