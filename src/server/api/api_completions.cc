// /v1/completions and /v1/chat/completions: checks a request, submits its tasks to the scheduler, and answers
// whole or as a stream of server-sent events.
#include <functional>
#include <optional>

#include "server/api/api.h"
#include "server/api/computation.h"
#include "server/api/idempotency.h"
#include "server/api/prompts.h"
#include "server/api/session_json.h"
#include "server/engine/api_error.h"
#include "server/engine/random_id.h"

namespace lattice::server {
namespace {

// What a completion is computed from.
struct CompletionInputs {
  CompletionRequest request;
  std::vector<std::vector<int32_t>> prompts;
  std::optional<SessionStore::Lease> lease;
  IdempotencyKey key;
  std::function<OrderedJson(const SessionStore::Lease&)> session_json;
};

// A completion in progress.
class Completion : public Computation {
 public:
  Completion(std::shared_ptr<Call> call, const ComputationContext& context, const ServedModel& served,
             CompletionInputs inputs)
      : Computation(std::move(call), context),
        inputs_(std::move(inputs)),
        response_(served, inputs_.request, inputs_.prompts) {}

 protected:
  void OnFailure(const std::exception_ptr& error) override {
    inputs_.lease.reset();
    call().SendError(error);
  }
  void StoreMidway(const Event& event) {
    if (event.midway && inputs_.lease) inputs_.lease->StoreMidway(*event.midway);
  }
  OrderedJson WithSession(OrderedJson last) {
    if (inputs_.lease) last["session"] = inputs_.session_json(*inputs_.lease);
    return last;
  }
  // Stores and releases the session before the end of the answer is sent: a client that has seen the end may
  // use the session at once, here or at another server.
  void Release(const std::string& answer) {
    if (!inputs_.lease) return;
    inputs_.key.Remember(*inputs_.lease, answer);
    inputs_.lease->Commit();
    inputs_.lease.reset();
  }

  CompletionInputs inputs_;
  CompletionResponse response_;
};

class WholeCompletion : public Completion {
 public:
  WholeCompletion(std::shared_ptr<Call> call, const ComputationContext& context, const ServedModel& served,
                  CompletionInputs inputs, http::ReservedBytes reserved)
      : Completion(std::move(call), context, served, std::move(inputs)), reserved_(std::move(reserved)) {}

 protected:
  void OnEvent(Event event) override {
    StoreMidway(event);
    response_.Add(event);
  }
  void OnEnd() override {
    std::string answer = DumpJson(WithSession(response_.Whole()));
    Release(answer);
    call().Answer(MakeResponse(200, "application/json", std::move(answer)));
    reserved_.Resize(0);
    call().Send();
  }

 private:
  http::ReservedBytes reserved_;
};

class StreamedCompletion : public Completion {
 public:
  using Completion::Completion;

 protected:
  void OnStart() override {
    call().BeginStream();
    begun_ = true;
    Send(response_.FirstChunks());
  }
  bool Full() override { return call().reply->Full(); }
  void OnEvent(Event event) override {
    StoreMidway(event);
    Send(response_.Chunks(event));
  }
  void OnEnd() override {
    const bool with_last = inputs_.request.include_usage || inputs_.lease.has_value();
    std::string last;
    if (with_last) last = Lines(std::vector<OrderedJson>(1, WithSession(response_.UsageChunk())));
    last += "data: [DONE]\n\n";
    Release(sent_ + last);
    Finish(last);
  }
  void OnFailure(const std::exception_ptr& error) override {
    inputs_.lease.reset();
    if (!begun_) return call().SendError(error);
    Finish("data: " + ErrorResponse(error).body + "\n\n");
  }

 private:
  static std::string Lines(const std::vector<OrderedJson>& chunks) {
    std::string lines;
    for (const OrderedJson& chunk : chunks) lines += "data: " + DumpJson(chunk) + "\n\n";
    return lines;
  }
  void Send(const std::vector<OrderedJson>& chunks) {
    const std::string lines = Lines(chunks);
    call().reply->Write(lines);
    // As much as may be remembered, and a byte more, by which it is too long.
    if (inputs_.key.given() && sent_.size() <= IdempotencyKey::kLongestAnswer) sent_ += lines;
  }
  void Finish(const std::string& line) {
    call().reply->Write(line);
    call().reply->End();
  }

  bool begun_ = false;
  std::string sent_;  // for a request that may be repeated
};

}  // namespace

void Api::Completions(Call& call) {
  CompletionRequest request = ParseCompletion(call.body(), limits_.request);
  if (request.session.empty() || !HasStore()) return Answer(request, call);
  call.ContinueAtStore([this, &call, request = std::move(request)] { Answer(request, call); });
}

void Api::Chat(Call& call) {
  CompletionRequest request = ParseChat(call.body(), limits_.request);
  UseTemplate(served_, request);
  Answer(request, call);
}

int64_t Api::TokenBytes(int64_t logprobs, bool trace) const {
  const model::ModelConfig& config = served_.model->config();
  constexpr int64_t kTokenBytes = 64, kLogprobBytes = 64;
  const int64_t memory = trace ? config.layers * config.heads * (config.Slots() + 16) * 2 : 0;
  return kTokenBytes + kLogprobBytes * (logprobs + 1) + memory;
}

// An answer that is not streamed is held in memory until it is complete, so its size is limited in advance.
int64_t Api::AnswerBytes(const CompletionRequest& request,
                         std::span<const std::vector<int32_t>> prompts) const {
  const int64_t bytes = TokenBytes(request.logprobs, request.trace);
  int64_t tokens = static_cast<int64_t>(prompts.size()) * request.max_tokens;
  for (const std::vector<int32_t>& prompt : prompts) tokens += static_cast<int64_t>(prompt.size());
  const int64_t most = limits_.request.answer_bytes / bytes / request.n;
  if (tokens <= most) return tokens * bytes * request.n;
  throw ApiError(
      400,
      StrCat("the answer could have ", tokens * request.n, " tokens with what is asked about each; at most ",
             most * request.n, " are answered whole. Ask for less, or set stream"),
      "max_tokens");
}

http::ReservedBytes Api::ReserveAnswer(int64_t bytes) const {
  http::ReservedBytes reserved(budget_);
  if (reserved.Resize(bytes)) return reserved;
  ++metrics_.rejected;
  throw ApiError(429, "the server holds as many answers as it may; try again in a moment", "", "overloaded");
}

void Api::CheckModel(const std::string& name) const {
  if (name.empty() || name == served_.name) return;
  throw ApiError(
      404,
      StrCat("there is no model \"", name.substr(0, 100), "\" here; this server has \"", served_.name, "\""),
      "model", "model_not_found");
}

void Api::Answer(const CompletionRequest& parsed, Call& call) {
  CheckModel(parsed.model);
  CheckQuota(call);
  CompletionInputs made_of{parsed, {}, {}, IdempotencyKey(call), [this](const SessionStore::Lease& lease) {
                             return SessionJson(served_, lease.id(), lease.conversation());
                           }};
  const CompletionRequest& request = made_of.request;
  std::shared_ptr<Conversation> conversation;
  if (!request.session.empty()) {
    call.NoteSession(request.session);
    made_of.lease.emplace(Borrow(call, request.session));
    if (made_of.key.Replay(call, *made_of.lease, request.stream, metrics_)) return;
    conversation = made_of.lease->shared();
  } else if (made_of.key.given()) {
    throw ApiError(400, "an Idempotency-Key needs a session: other requests change nothing",
                   "Idempotency-Key");
  }
  made_of.prompts = PromptsOf(served_, limits_.request, request, conversation.get());
  if (conversation) {
    const int64_t more = static_cast<int64_t>(made_of.prompts[0].size()) + request.max_tokens;
    sessions_.CheckLength(*conversation, more);
    made_of.lease->Reserve(GrownBytes(*conversation, more) * (made_of.key.given() ? 2 : 1));
    made_of.lease->Change(made_of.key.given());
  }
  std::vector<Task> tasks = TasksOf(served_, request, made_of.prompts, conversation, MidwayTokens());
  const ComputationContext context =
      conversation ? SessionContext() : ComputationContext{workers_, metrics_, accounts_};
  std::shared_ptr<Computation> completion;
  if (request.stream) {
    completion =
        std::make_shared<StreamedCompletion>(call.shared_from_this(), context, served_, std::move(made_of));
  } else {
    http::ReservedBytes reserved = ReserveAnswer(AnswerBytes(request, made_of.prompts));
    completion = std::make_shared<WholeCompletion>(call.shared_from_this(), context, served_,
                                                   std::move(made_of), std::move(reserved));
  }
  completion->Start(scheduler_, std::move(tasks), DeadlineOf(call));
}

}  // namespace lattice::server
