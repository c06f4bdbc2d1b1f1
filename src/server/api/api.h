// What the server answers on its routes. docs/serving.md and openapi.json describe them.
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
  std::chrono::seconds job{600};  // a request that computes longer is ended
};

// What the handlers work with; must outlive them.
struct ApiWorld {
  const ServedModel& served;
  Scheduler& scheduler;
  SessionStore& sessions;
  runtime::PrefixCache& cache;
  Metrics& metrics;
  http::WorkerPool& workers;
  http::ByteBudget& budget;
  const StateSeal& seal;
};

// Handlers answer the call, or throw ApiError for what they refuse. All may be called from any thread.
class Api {
 public:
  Api(const ApiWorld& world, const ApiLimits& limits);

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
  // Throws ApiError (400) for a text that the tokenizer refuses; `param` is the field it stood in.
  std::vector<int32_t> Encoded(const std::string& text, const char* param) const;
  std::vector<int32_t> TokensOf(const Prompt& prompt, bool at_start) const;
  std::vector<Task> TasksOf(const CompletionRequest& request, std::span<const std::vector<int32_t>> prompts,
                            const std::shared_ptr<Conversation>& conversation) const;
  // Bytes to hold for an answer until it is complete. Throws ApiError when they are more than are allowed.
  int64_t AnswerBytes(const CompletionRequest& request, std::span<const std::vector<int32_t>> prompts) const;
  // Of a token in an answer, about.
  int64_t TokenBytes(int64_t logprobs, bool trace) const;
  // A part of the budget for an answer; throws ApiError (429) when there is not so much.
  http::ReservedBytes ReserveAnswer(int64_t bytes) const;
  // What a conversation may take when it has read `more` tokens.
  int64_t GrownBytes(const Conversation& conversation, int64_t more) const;

  // Reads tokens into a conversation, which the lease keeps for the call; then calls `then` with the records,
  // which have memories when `trace`, and sends the answer that it gives. `undo` when the tokens could not be
  // read. The conversation may be another one than the lease's.
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

// The routes: method, path with {id} in it, and what is done. `guarded`: needs the key when there is one.
struct Route {
  std::string_view method, path;
  void (Api::*handle)(Call& call) = nullptr;
  void (Api::*show)(Call& call) const = nullptr;
  bool guarded = true;
  // Its name in the metrics.
  std::string label() const { return std::string(name.empty() ? path : name); }
  std::string_view name = {};
};
std::span<const Route> Routes();
// The page, which openapi.json does not describe.
std::span<const Route> PageRoutes();

// The committed description of the interface.
std::string_view OpenApiJson();

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_API_H_
