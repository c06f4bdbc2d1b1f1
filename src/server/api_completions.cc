#include <algorithm>

#include "server/api.h"
#include "server/api_error.h"
#include "server/connection.h"
#include "server/random_id.h"

namespace lattice::server {
namespace {

// What an answer needs while it is being written. The job goes before the session it computes with, and both
// before what they refer to.
struct Exchange {
  CompletionRequest request;
  std::vector<std::vector<int32_t>> prompts;
  std::optional<SessionStore::Lease> lease;
  std::optional<CompletionResponse> response;
  std::optional<JobHandle> job;

  // Before the end of a stream is told: a client that has seen it may use the session at once.
  void Release() {
    job.reset();
    lease.reset();
  }
};

bool Send(httplib::DataSink& sink, const std::string& data) {
  const std::string line = "data: " + data + "\n\n";
  return sink.write(line.data(), line.size());
}

bool Send(httplib::DataSink& sink, const std::vector<OrderedJson>& chunks) {
  return std::all_of(chunks.begin(), chunks.end(),
                     [&](const OrderedJson& chunk) { return Send(sink, chunk.dump()); });
}

}  // namespace

std::vector<int32_t> Api::TokensOf(const Prompt& prompt, bool at_start) const {
  std::vector<int32_t> tokens;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    tokens = served_.tokenizer->Encode(*text);
  } else {
    tokens = std::get<std::vector<int32_t>>(prompt);
  }
  if (static_cast<int64_t>(tokens.size()) > limits_.request.prompt_tokens) {
    throw ApiError(400,
                   StrCat("prompt has ", tokens.size(), " tokens; at most ", limits_.request.prompt_tokens,
                          " are accepted"),
                   "prompt", "context_length_exceeded");
  }
  if (tokens.empty() && at_start) tokens.push_back(served_.FirstToken());
  return tokens;
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
      task.at_start = prompt.size() == 1 && prompt[0] == served_.tokenizer->special().eot;
      task.logprobs = request.logprobs;
      task.prompt_logprobs = request.echo && request.logprobs >= 0;
      task.trace = request.trace;
      if (i > 0 && !task.prompt_logprobs && !task.trace) task.same_prompt_as = first;
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

std::shared_ptr<Job> Api::Submit(std::vector<Task> tasks) {
  const Connection* client = Connection::Current();
  return scheduler_.Submit(std::move(tasks), client == nullptr ? -1 : client->socket(),
                           Clock::now() + limits_.job);
}

void Api::Completions(const Call& call) { Answer(ParseCompletion(call.request.body, limits_.request), call); }

void Api::Chat(const Call& call) { Answer(ParseChat(call.request.body, limits_.request), call); }

// An answer that is not streamed is held until it is complete, so its size is bounded before it is begun.
void Api::CheckAnswerSize(const CompletionRequest& request,
                          std::span<const std::vector<int32_t>> prompts) const {
  const model::ModelConfig& config = served_.model->config();
  constexpr int64_t kTokenBytes = 64, kLogprobBytes = 64;
  int64_t bytes = kTokenBytes + kLogprobBytes * (request.logprobs + 1);
  if (request.trace) bytes += config.layers * config.heads * (config.Slots() + 16) * 2;
  int64_t tokens = static_cast<int64_t>(prompts.size()) * request.max_tokens;
  for (const std::vector<int32_t>& prompt : prompts) tokens += static_cast<int64_t>(prompt.size());
  const int64_t most = limits_.request.answer_bytes / bytes / request.n;
  if (request.stream || tokens <= most) return;
  throw ApiError(
      400,
      StrCat("the answer could have ", tokens * request.n, " tokens with what is asked about each; at most ",
             most * request.n, " are answered whole. Ask for less, or set stream"),
      "max_tokens");
}

void Api::Answer(const CompletionRequest& parsed, const Call& call) {
  if (!parsed.model.empty() && parsed.model != served_.name) {
    throw ApiError(404,
                   StrCat("there is no model \"", parsed.model.substr(0, 100), "\" here; this server has \"",
                          served_.name, "\""),
                   "model", "model_not_found");
  }
  const auto exchange = std::make_shared<Exchange>();
  exchange->request = parsed;
  const CompletionRequest& request = exchange->request;
  std::shared_ptr<Conversation> conversation;
  if (!request.session.empty()) {
    exchange->lease.emplace(sessions_.Borrow(request.session));
    conversation = exchange->lease->shared();
  }
  const bool fresh = !conversation || conversation->position() == 0;
  for (const Prompt& prompt : request.prompts) exchange->prompts.push_back(TokensOf(prompt, fresh));
  if (request.prompts.empty()) exchange->prompts.push_back(TokensOf("", fresh));
  if (conversation) {
    if (exchange->prompts[0].empty() && conversation->logits.empty()) {
      throw ApiError(400,
                     "the session's state was loaded, so its last token is not known; give a prompt to read",
                     "prompt");
    }
    sessions_.CheckRoom(*conversation,
                        static_cast<int64_t>(exchange->prompts[0].size()) + request.max_tokens);
  }
  CheckAnswerSize(request, exchange->prompts);
  exchange->response.emplace(served_, request, exchange->prompts);
  exchange->job.emplace(Submit(TasksOf(request, exchange->prompts, conversation)));
  CompletionResponse& response = *exchange->response;
  const auto session_json = [this, exchange = exchange.get()] {
    return SessionJson(exchange->lease->id(), exchange->lease->conversation());
  };

  if (!request.stream) {
    while (const std::optional<Event> event = (*exchange->job)->Next()) response.Add(*event);
    OrderedJson body = response.Whole();
    if (exchange->lease) body["session"] = session_json();
    return Reply(call, body);
  }
  call.response.set_header("Cache-Control", "no-store");
  call.response.set_chunked_content_provider(
      "text/event-stream", [exchange, session_json](size_t, httplib::DataSink& sink) {
        CompletionResponse& pieces = *exchange->response;
        try {
          if (!Send(sink, pieces.FirstChunks())) return false;
          while (const std::optional<Event> event = (*exchange->job)->Next()) {
            if (!Send(sink, pieces.Chunks(*event))) return false;
          }
          OrderedJson last = pieces.UsageChunk();
          const bool of_session = exchange->lease.has_value();
          if (of_session) last["session"] = session_json();
          exchange->Release();
          if (exchange->request.include_usage || of_session) Send(sink, last.dump());
          Send(sink, "[DONE]");
        } catch (const ApiError& error) {
          exchange->Release();
          Send(sink, error.Body());
        }
        sink.done();
        return true;
      });
}

}  // namespace lattice::server
