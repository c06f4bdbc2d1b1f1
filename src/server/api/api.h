// The handlers of all routes. docs/serving.md and openapi.json describe the API.
#ifndef LATTICE_SERVER_API_API_H_
#define LATTICE_SERVER_API_API_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/prefix_cache.h"
#include "server/api/call.h"
#include "server/api/completion_request.h"
#include "server/api/completion_response.h"
#include "server/engine/scheduler.h"
#include "server/engine/served_model.h"
#include "server/engine/server_metrics.h"
#include "server/engine/session_store.h"
#include "server/engine/state_cost.h"
#include "server/engine/state_seal.h"

namespace lattice::server {

struct ApiLimits {
  RequestLimits request;
  std::chrono::seconds job{600};  // the longest time that one request may compute
};

// What the handlers use; must outlive them.
struct ApiContext {
  const ServedModel& served;
  Scheduler& scheduler;
  SessionStore& sessions;
  runtime::PrefixCache& cache;
  Metrics& metrics;
  http::WorkerPool& workers;
  http::ByteBudget& budget;
  const StateSeal& seal;
};

// A handler answers its call or throws ApiError. Handlers may be called from any thread.
class Api {
 public:
  Api(const ApiContext& context, const ApiLimits& limits);

  void Models(Call& call) const;
  void Completions(Call& call);
  void Chat(Call& call);
  void Tokenize(Call& call) const;
  void TokenizerInfo(Call& call) const;
  void Detokenize(Call& call) const;
  void Health(Call& call) const;
  void PrometheusMetrics(Call& call) const;
  void OpenApi(Call& call) const;
  void Page(Call& call) const;

  void CreateSession(Call& call);
  void ShowSession(Call& call);
  void DeleteSession(Call& call);
  void AppendToSession(Call& call);
  void ForkSession(Call& call);
  void RewindSession(Call& call);
  void SaveState(Call& call);
  void LoadState(Call& call);
  void ShowMemory(Call& call);

 private:
  void Answer(const CompletionRequest& request, Call& call);
  // Throws ApiError (400) for a text that the tokenizer refuses; `param` is the field of the request.
  std::vector<int32_t> Encoded(const std::string& text, const char* param) const;
  std::vector<int32_t> TokensOf(const Prompt& prompt, bool at_start) const;
  std::vector<Task> TasksOf(const CompletionRequest& request, std::span<const std::vector<int32_t>> prompts,
                            const std::shared_ptr<Conversation>& conversation) const;
  // The memory that an answer takes until it is complete. Throws ApiError when that is more than allowed.
  int64_t AnswerBytes(const CompletionRequest& request, std::span<const std::vector<int32_t>> prompts) const;
  // The approximate size of one token in an answer.
  int64_t TokenBytes(int64_t logprobs, bool trace) const;
  // Reserves budget for an answer; throws ApiError (429) when there is not enough left.
  http::ReservedBytes ReserveAnswer(int64_t bytes) const;
  // The most memory that a conversation takes after `more` further tokens.
  int64_t GrownBytes(const Conversation& conversation, int64_t more) const;

  // Reads tokens into a conversation while the lease holds the session. Afterwards calls `then` with the
  // records of the tokens (with memory traces if `trace`), which must answer the call; or `undo`, when
  // reading failed. The conversation need not be the one of the lease.
  struct Reading {
    SessionStore::Lease lease;
    std::shared_ptr<Conversation> conversation;
    std::vector<int32_t> tokens;
    bool trace = false;
    std::function<void(Call&, const SessionStore::Lease&, std::vector<TokenRecord>)> then;
    std::function<void(const SessionStore::Lease&)> undo = {};
  };
  class ReadingComputation;
  void Read(Call& call, Reading reading);
  OrderedJson SessionJson(const std::string& id, const Conversation& conversation) const;
  Clock::time_point Deadline() const { return Clock::now() + limits_.job; }

  const ServedModel& served_;
  Scheduler& scheduler_;
  SessionStore& sessions_;
  runtime::PrefixCache& cache_;
  Metrics& metrics_;
  http::WorkerPool& workers_;
  http::ByteBudget& budget_;
  const StateSeal& seal_;
  const ApiLimits limits_;
  const StateCost cost_;
};

// Answers with JSON.
void Reply(Call& call, const OrderedJson& body, int status = 200);

// A route: method, path (possibly with {id}) and handler. `guarded`: requires the API key if there is one.
struct Route {
  std::string_view method, path;
  void (Api::*handle)(Call& call) = nullptr;
  void (Api::*show)(Call& call) const = nullptr;
  bool guarded = true;
  // The route's name in the metrics.
  std::string label() const { return std::string(name.empty() ? path : name); }
  std::string_view name = {};
};
std::span<const Route> Routes();
// The routes of the page, which openapi.json does not describe.
std::span<const Route> PageRoutes();

// The contents of openapi.json.
std::string_view OpenApiJson();

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_API_H_
