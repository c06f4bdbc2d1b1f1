// /v1/completions and /v1/chat/completions: checks a request, submits its tasks to the scheduler, and answers
// whole or as a stream of server-sent events.
#include <functional>
#include <optional>

#include "server/api/api.h"
#include "server/api/computation.h"
#include "server/api/idempotency.h"
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

// Without a prompt, a session continues from the logits after its last token, which must be known.
void CheckContinues(const Conversation& conversation, const std::vector<int32_t>& prompt) {
  if (!prompt.empty() || !conversation.logits.empty()) return;
  if (conversation.tokens.empty())
    throw ApiError(400,
                   "the session's state was loaded, so its last token is not known; give a prompt to read",
                   "prompt");
  throw ApiError(400,
                 "the session's last request was ended before its prompt was read; give a prompt to read",
                 "prompt");
}

}  // namespace

std::vector<int32_t> Api::Encoded(const std::string& text, const char* param) const {
  try {
    return served_.tokenizer->Encode(text);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), param);
  }
}

std::vector<int32_t> Api::TokensOf(const Prompt& prompt, bool at_start) const {
  std::vector<int32_t> tokens;
  const auto* const text = std::get_if<std::string>(&prompt);
  if (text != nullptr) {
    tokens = Encoded(*text, "prompt");
  } else {
    tokens = std::get<std::vector<int32_t>>(prompt);
  }
  if (static_cast<int64_t>(tokens.size()) > limits_.request.prompt_tokens) {
    throw ApiError(400,
                   StrCat("prompt has ", tokens.size(), " tokens; at most ", limits_.request.prompt_tokens,
                          " are accepted"),
                   "prompt", "context_length_exceeded");
  }
  if (text != nullptr && !text->empty() && at_start) BeginText(tokens);
  return tokens;
}

void Api::BeginText(std::vector<int32_t>& tokens) const {
  const text::SpecialIds& special = served_.tokenizer->special();
  if (special.starts_texts) tokens.insert(tokens.begin(), special.bos);
}

std::vector<Task> Api::TasksOf(const CompletionRequest& request,
                               std::span<const std::vector<int32_t>> prompts,
                               const std::shared_ptr<Conversation>& conversation) const {
  const uint64_t seed = request.has_seed ? request.sampler.seed : RandomBits();
  std::vector<Task> tasks;
  for (const std::vector<int32_t>& prompt : prompts) {
    const auto first = static_cast<int64_t>(tasks.size());
    for (int64_t i = 0; i < request.n; ++i) {
      Task task;
      task.conversation = conversation;
      task.prompt = prompt;
      task.max_tokens = request.max_tokens;
      task.sampler = request.sampler;
      task.sampler.seed = seed + static_cast<uint64_t>(i);
      task.stops = request.stops;
      task.at_start = prompt.size() == 1 && prompt[0] == served_.FirstToken();
      task.logprobs = request.logprobs;
      task.prompt_logprobs = request.echo && request.logprobs >= 0;
      task.trace = request.trace;
      task.grammar = request.grammar;
      if (request.templated) task.also_ends = served_.tokenizer->special().End();
      task.midway_tokens = conversation ? MidwayTokens() : 0;
      if (i > 0 && !task.prompt_logprobs && !task.trace) task.same_prompt_as = first;
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

void Api::Completions(Call& call) {
  CompletionRequest request = ParseCompletion(call.body(), limits_.request);
  if (request.session.empty() || !HasStore()) return Answer(request, call);
  call.ContinueAtStore([this, &call, request = std::move(request)] { Answer(request, call); });
}

void Api::Chat(Call& call) {
  CompletionRequest request = ParseChat(call.body(), limits_.request);
  if (served_.chat_template) UseTemplate(request);
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
                             return SessionJson(lease.id(), lease.conversation());
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
  const bool fresh = !conversation || conversation->position() == 0;
  for (const Prompt& prompt : request.prompts) made_of.prompts.push_back(TokensOf(prompt, fresh));
  if (request.prompts.empty()) made_of.prompts.emplace_back();
  for (std::vector<int32_t>& prompt : made_of.prompts) {
    if (prompt.empty() && fresh) prompt.push_back(served_.FirstToken());
  }
  if (conversation) CheckContinues(*conversation, made_of.prompts[0]);
  if (conversation) {
    const int64_t more = static_cast<int64_t>(made_of.prompts[0].size()) + request.max_tokens;
    sessions_.CheckLength(*conversation, more);
    made_of.lease->Reserve(GrownBytes(*conversation, more) * (made_of.key.given() ? 2 : 1));
    made_of.lease->Change(made_of.key.given());
  }
  std::vector<Task> tasks = TasksOf(request, made_of.prompts, conversation);
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
