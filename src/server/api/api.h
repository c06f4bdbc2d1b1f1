// The handlers of all routes. docs/serving.md and openapi.json describe the API.
#ifndef LATTICE_SERVER_API_API_H_
#define LATTICE_SERVER_API_API_H_

#include <atomic>
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
#include "server/api/computation.h"
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
  http::WorkerPool& store_workers;  // may wait for the store; `workers` where there is none
  int64_t store_waiting;            // how many requests may wait for them
  http::ByteBudget& budget;
  const StateSeal& seal;
  Accounts& accounts;
};

// A handler answers its call or throws ApiError. Handlers may be called from any thread.
class Api {
 public:
  Api(const ApiContext& context, const ApiLimits& limits);

  // Runs the handler of the call's route, on another thread if it may have to wait for the store.
  void Handle(Call& call);
  // Throws ApiError (503) when too many wait already.
  void PostToStore(const std::shared_ptr<http::Work>& work);
  // From now on the server says that it is not ready for more.
  void StartDraining() { draining_ = true; }

  void Models(Call& call) const;
  void Completions(Call& call);
  void Chat(Call& call);
  void Embeddings(Call& call);
  void Tokenize(Call& call) const;
  void TokenizerInfo(Call& call) const;
  void Detokenize(Call& call) const;
  void Health(Call& call) const;
  void Ready(Call& call) const;
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
  Clock::time_point DeadlineOf(const Call& call) const;
  // Throws ApiError (429) when the call's account has used up its tokens.
  void CheckQuota(const Call& call) const;
  // Throws ApiError (404) when a request names another model than this one.
  void CheckModel(const std::string& name) const;
  SessionStore::Lease Borrow(Call& call, const std::string& id, bool damaged = false);
  bool HasStore() const { return sessions_.keeping().store != nullptr; }
  ComputationContext SessionContext() const { return {store_workers_, metrics_, accounts_}; }
  void AddStoreMetrics(std::string& out) const;
  int64_t MidwayTokens() const { return sessions_.keeping().durability.tokens; }

  const ServedModel& served_;
  Scheduler& scheduler_;
  SessionStore& sessions_;
  runtime::PrefixCache& cache_;
  Metrics& metrics_;
  http::WorkerPool& workers_;
  http::WorkerPool& store_workers_;
  const int64_t store_waiting_;
  http::ByteBudget& budget_;
  const StateSeal& seal_;
  Accounts& accounts_;
  std::atomic<bool> draining_{false};
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
  bool waits = false;  // may have to wait for the store of sessions
};
std::span<const Route> Routes();
// The routes of the page, which openapi.json does not describe.
std::span<const Route> PageRoutes();

// The contents of openapi.json.
std::string_view OpenApiJson();

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_API_H_
