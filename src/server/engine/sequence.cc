// The life of one sequence: prefix cache lookup, prefill in blocks, sampling, stop texts, and the events that
// it reports.
#include "server/engine/sequence.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "server/engine/api_error.h"

namespace lattice::server {
namespace {

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Runs a step of the constraint. What response_format costs too much is the client's mistake.
template <typename Step>
void OfFormat(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "response_format", "unsupported_schema");
  }
}

}  // namespace

Sequence::Sequence(const SequenceContext& context, Task task, int64_t index, std::shared_ptr<Job> job)
    : context_(context),
      task_(std::move(task)),
      index_(index),
      job_(std::move(job)),
      kept_(task_.conversation != nullptr),
      conversation_(task_.conversation),
      sampler_(task_.sampler),
      shown_(*context.served.tokenizer, task_.at_start, task_.stops) {
  const model::ModelConfig& config = context.served.model->config();
  if (task_.trace && config.HasMemory()) trace_.emplace(config);
  if (task_.grammar != nullptr) OfFormat([&] { constraint_.emplace(task_.grammar, context.tokens); });
}

void Sequence::AddFollower(std::shared_ptr<Sequence> follower) {
  follower->follows_ = true;
  followers_.push_back(std::move(follower));
}

void Sequence::Fail(std::exception_ptr reason) noexcept {
  if (conversation_) conversation_->damaged = true;
  job_->Fail(std::move(reason));
}

void Sequence::Begin() {
  begun_ = true;
  if (!conversation_) conversation_ = std::make_shared<Conversation>(context_.served.model);
  last_logits_ = conversation_->logits;
  sampler_.Accept(conversation_->tokens);
  sampler_.Accept(task_.prompt);
  const bool all_computed = trace_ || task_.prompt_logprobs || task_.embed;
  const bool begun = conversation_->position() > 0 || conversation_->loaded;
  if (begun || all_computed || task_.prompt.size() < 2) return;
  const std::span<const int32_t> before_last = std::span(task_.prompt).first(task_.prompt.size() - 1);
  const runtime::PrefixCache::Hit hit = context_.cache.Find(before_last);
  if (hit.tokens == 0) return;
  conversation_->session.Rewind(hit.state);
  conversation_->tokens.assign(before_last.begin(), before_last.begin() + hit.tokens);
  prompt_at_ = static_cast<size_t>(hit.tokens);
  cached_ = hit.tokens;
  context_.metrics.cached_tokens += hit.tokens;
}

std::optional<runtime::Feed> Sequence::Plan(int64_t room) {
  if (done_ || follows_) return std::nullopt;
  if (!begun_) Begin();
  const std::vector<int32_t>& prompt = task_.prompt;
  if (prompt_at_ < prompt.size()) {
    const int64_t left = static_cast<int64_t>(prompt.size() - prompt_at_);
    int64_t count = std::min(kBlock - conversation_->position() % kBlock, left > 1 ? left - 1 : left);
    count = std::min(count, room);
    if (count <= 0) return std::nullopt;
    const bool last = count == left;
    return FeedOf(std::span(prompt).subspan(prompt_at_, static_cast<size_t>(count)),
                  task_.prompt_logprobs ? runtime::Want::kAll
                  : last                ? runtime::Want::kLast
                                        : runtime::Want::kNone);
  }
  if (chosen_.empty() && reason_ == nullptr) {
    AfterPrompt(std::vector<float>(std::move(conversation_->logits)));
    if (done_) return std::nullopt;
  }
  const size_t target = reason_ != nullptr ? kept_tokens_ : chosen_.size();
  return FeedOf(std::span(chosen_).subspan(read_, target - read_), runtime::Want::kLast);
}

std::optional<runtime::Feed> Sequence::FeedOf(std::span<const int32_t> tokens, runtime::Want want) {
  fed_ = tokens;
  conversation_->logits.clear();
  runtime::Feed feed = {&conversation_->session, tokens, want};
  if (trace_) trace_->Watch(feed);
  if (task_.embed) feed.hidden_sum = &hidden_sum_;
  return feed;
}

void Sequence::Consume(std::span<const float> logits) {
  conversation_->tokens.insert(conversation_->tokens.end(), fed_.begin(), fed_.end());
  const bool of_prompt = prompt_at_ < task_.prompt.size();
  if (of_prompt) {
    context_.metrics.prompt_tokens += static_cast<int64_t>(fed_.size());
    PushPromptRecords(logits);
    prompt_at_ += fed_.size();
    CacheState();
    ReportMidway();
    const auto vocabulary = static_cast<size_t>(context_.served.model->config().vocab_size);
    if (prompt_at_ == task_.prompt.size()) AfterPrompt(logits.last(vocabulary));
    return;
  }
  if (trace_) {
    std::vector<std::shared_ptr<const TokenMemory>> memories = trace_->Take();
    for (size_t i = 0; i < memories.size(); ++i) {
      const size_t token = read_ + i;
      if (token >= pushed_ && token - pushed_ < pending_.size())
        pending_[token - pushed_].memory = memories[i];
    }
  }
  read_ += fed_.size();
  // The client may hang up at any time and continue the session later from here.
  if (kept_) conversation_->logits.assign(logits.begin(), logits.end());
  CacheState();
  ReportMidway();
  if (trace_) PushRecords(reason_ != nullptr ? static_cast<int64_t>(kept_tokens_) : shown_.CertainTokens());
  if (reason_ != nullptr) return Finish(reason_, logits);
  Choose(logits);
}

// Puts the state into the prefix cache at multiples of kBlock and at the end of the prompt. A transformer's
// state grows with the text, so for it only whole prompts are cached. A state that descends from an upload is
// never cached: it need not be what its tokens lead to, and must not reach other clients.
void Sequence::CacheState() {
  if (conversation_->loaded) return;
  const bool block = conversation_->position() % kBlock == 0 && !context_.served.model->config().Grows();
  const bool prompt = prompt_at_ + 1 == task_.prompt.size() && chosen_.empty();
  if (block || prompt) context_.cache.Put(conversation_->tokens, conversation_->session.Checkpoint());
}

void Sequence::ReportMidway() {
  if (!kept_ || task_.midway_tokens == 0) return;
  const int64_t after = conversation_->position(), before = after - static_cast<int64_t>(fed_.size());
  if (after / task_.midway_tokens == before / task_.midway_tokens) return;
  Event event;
  event.task = index_;
  event.midway = std::make_shared<const Conversation>(conversation_->Fork());
  job_->Push(std::move(event));
}

void Sequence::PushPromptRecords(std::span<const float> logits) {
  if (!trace_ && !task_.prompt_logprobs) return;
  Event event;
  event.task = index_;
  std::vector<std::shared_ptr<const TokenMemory>> memories;
  if (trace_) memories = trace_->Take();
  const auto vocabulary = static_cast<size_t>(context_.served.model->config().vocab_size);
  for (size_t i = 0; i < fed_.size(); ++i) {
    TokenRecord record;
    if (task_.prompt_logprobs) {
      if (!last_logits_.empty()) record = RecordOf(fed_[i], last_logits_);
      const auto row = logits.subspan(i * vocabulary, vocabulary);
      last_logits_.assign(row.begin(), row.end());
    }
    record.id = fed_[i];
    record.prompt = true;
    if (trace_) record.memory = memories[i];
    event.tokens.push_back(std::move(record));
  }
  job_->Push(std::move(event));
}

void Sequence::AfterPrompt(std::span<const float> logits) {
  for (const std::shared_ptr<Sequence>& follower : followers_) follower->Adopt(*this, logits);
  followers_.clear();
  if (kept_) conversation_->logits.assign(logits.begin(), logits.end());
  if (task_.max_tokens == 0) return Finish("length", logits);
  Choose(logits);
}

void Sequence::Adopt(const Sequence& leader, std::span<const float> logits) {
  follows_ = false;
  begun_ = true;
  conversation_ = std::make_shared<Conversation>(leader.conversation_->Fork());
  sampler_.Accept(task_.prompt);
  prompt_at_ = task_.prompt.size();
  cached_ = static_cast<int64_t>(prompt_at_);
  conversation_->logits.assign(logits.begin(), logits.end());
}

// The logits of the tokenizer's ids: the model's vocabulary may be padded to a round size.
std::span<const float> Sequence::TokenizerLogits(std::span<const float> logits) const {
  return logits.first(static_cast<size_t>(context_.served.tokenizer->vocab_size()));
}

TokenRecord Sequence::RecordOf(int32_t id, std::span<const float> logits) const {
  TokenRecord record;
  record.id = id;
  if (task_.logprobs < 0) return record;
  record.logprob = runtime::LogProb(logits, id);
  if (task_.logprobs > 0) record.top = runtime::TopLogProbs(logits, task_.logprobs);
  return record;
}

bool Sequence::Ends(int32_t id) const {
  return context_.served.tokenizer->special().Ends(id) || (id >= 0 && id == task_.also_ends);
}

void Sequence::Choose(std::span<const float> logits) {
  const std::vector<bool>* allowed = nullptr;
  if (constraint_) OfFormat([&] { allowed = &constraint_->Allowed(); });
  const int32_t id = sampler_.Next(TokenizerLogits(logits), allowed);
  const Clock::time_point now = Clock::now();
  if (last_token_) {
    context_.metrics.between_tokens.Add(Seconds(now - *last_token_));
  } else {
    context_.metrics.first_token.Add(Seconds(now - job_->created()));
  }
  last_token_ = now;
  if (Ends(id)) {
    shown_.Finish();
    kept_tokens_ = chosen_.size();
    return Finish("stop", logits);
  }
  ++context_.metrics.chosen_tokens;
  chosen_.push_back(id);
  pending_.push_back(RecordOf(id, logits));
  bool stopped = shown_.Push(id);
  if (constraint_) OfFormat([&] { constraint_->Accept(id); });
  const bool complete = constraint_ && constraint_->Complete();
  const bool full = complete || static_cast<int64_t>(chosen_.size()) == task_.max_tokens;
  if (!stopped && full) stopped = shown_.Finish();
  if (stopped) {
    kept_tokens_ = static_cast<size_t>(shown_.CertainTokens());
    pending_.resize(std::min(pending_.size(), std::max(kept_tokens_, pushed_) - pushed_));
    reason_ = "stop";
    if (!kept_ || kept_tokens_ == read_) return Finish(reason_, logits);
    return RewindStopText();
  }
  if (full) {
    kept_tokens_ = chosen_.size();
    reason_ = complete ? "stop" : "length";
    if (!kept_ && !trace_) return Finish(reason_, logits);
  } else {
    SaveStopCheckpoint(logits);
  }
  if (!trace_) PushRecords(shown_.CertainTokens());
}

// Saves the state as soon as held-back text may become a stop text that includes the token just sampled.
void Sequence::SaveStopCheckpoint(std::span<const float> logits) {
  const bool waiting = shown_.CertainTokens() < static_cast<int64_t>(chosen_.size());
  if (!waiting) stop_checkpoint_.reset();
  if (!kept_ || task_.stops.empty() || !waiting || stop_checkpoint_) return;
  stop_checkpoint_ =
      StopCheckpoint{conversation_->session.Checkpoint(), {logits.begin(), logits.end()}, read_};
}

void Sequence::RewindStopText() {
  Check(stop_checkpoint_ && stop_checkpoint_->chosen <= kept_tokens_ && kept_tokens_ <= read_,
        "[serve] there is no state before the stop text");
  conversation_->session.Rewind(stop_checkpoint_->state);
  conversation_->tokens.resize(conversation_->tokens.size() - (read_ - stop_checkpoint_->chosen));
  read_ = stop_checkpoint_->chosen;
  if (read_ == kept_tokens_) Finish(reason_, stop_checkpoint_->logits);
}

void Sequence::PushRecords(int64_t certain) {
  Event event;
  event.task = index_;
  event.text = shown_.Take();
  const auto count = std::min(pending_.size(), std::max(static_cast<size_t>(certain), pushed_) - pushed_);
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(count);
  event.tokens.assign(std::make_move_iterator(pending_.begin()), std::make_move_iterator(end));
  pending_.erase(pending_.begin(), end);
  pushed_ += count;
  if (!event.tokens.empty() || !event.text.empty()) job_->Push(std::move(event));
}

void Sequence::Finish(const char* reason, std::span<const float> logits) {
  if (kept_) conversation_->logits.assign(logits.begin(), logits.end());
  PushRecords(static_cast<int64_t>(kept_tokens_));
  Event event;
  event.task = index_;
  event.reason = reason;
  event.prompt_tokens = static_cast<int64_t>(task_.prompt.size());
  event.cached_tokens = cached_;
  event.chosen_tokens = static_cast<int64_t>(chosen_.size());
  for (const double sum : hidden_sum_)
    event.embedding.push_back(static_cast<float>(sum / static_cast<double>(task_.prompt.size())));
  done_ = true;
  job_->Push(std::move(event));
}

}  // namespace lattice::server
