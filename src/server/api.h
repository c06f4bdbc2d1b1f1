// What the server answers on its routes. docs/serving.md and openapi.json describe them.
#ifndef LATTICE_SERVER_API_H_
#define LATTICE_SERVER_API_H_

#include <httplib.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/prefix_cache.h"
#include "server/completion_request.h"
#include "server/completion_response.h"
#include "server/metrics.h"
#include "server/scheduler.h"
#include "server/served_model.h"
#include "server/session_store.h"

namespace lattice::server {

// One request on its way to an answer.
struct Call {
  const httplib::Request& request;
  httplib::Response& response;
  std::string id;  // what stands for {id} in the route
};

struct ApiLimits {
  RequestLimits request;
  std::chrono::seconds job{600};  // a request that computes longer is ended
};

// Handlers throw ApiError for what they refuse. All may be called from any thread.
class Api {
 public:
  // All must outlive the object.
  Api(const ServedModel& served, Scheduler& scheduler, SessionStore& sessions, runtime::PrefixCache& cache,
      Metrics& metrics, const ApiLimits& limits);

  void Models(const Call& call) const;
  void Completions(const Call& call);
  void Chat(const Call& call);
  void Tokenize(const Call& call) const;
  void TokenizerInfo(const Call& call) const;
  void Detokenize(const Call& call) const;
  void Health(const Call& call) const;
  void PrometheusMetrics(const Call& call) const;
  void OpenApi(const Call& call) const;

  void CreateSession(const Call& call);
  void ShowSession(const Call& call);
  void DeleteSession(const Call& call);
  void AppendToSession(const Call& call);
  void ForkSession(const Call& call);
  void RewindSession(const Call& call);
  void SaveState(const Call& call);
  void LoadState(const Call& call);
  void ShowMemory(const Call& call);

 private:
  void Answer(const CompletionRequest& request, const Call& call);
  std::vector<int32_t> TokensOf(const Prompt& prompt, bool at_start) const;
  std::vector<Task> TasksOf(const CompletionRequest& request, std::span<const std::vector<int32_t>> prompts,
                            const std::shared_ptr<Conversation>& conversation) const;
  void CheckAnswerSize(const CompletionRequest& request, std::span<const std::vector<int32_t>> prompts) const;
  std::shared_ptr<Job> Submit(std::vector<Task> tasks);
  // Reads tokens into a conversation; the records when `trace`.
  std::vector<TokenRecord> Read(const std::shared_ptr<Conversation>& conversation,
                                const std::vector<int32_t>& tokens, bool trace);
  OrderedJson SessionJson(const std::string& id, const Conversation& conversation) const;

  const ServedModel& served_;
  Scheduler& scheduler_;
  SessionStore& sessions_;
  runtime::PrefixCache& cache_;
  Metrics& metrics_;
  const ApiLimits limits_;
};

// Sends JSON.
void Reply(const Call& call, const OrderedJson& body, int status = 200);

// The routes: method, path with {id} in it, and what is done. `guarded`: needs the key when there is one.
struct Route {
  std::string_view method, path;
  void (Api::*handle)(const Call& call) = nullptr;
  void (Api::*show)(const Call& call) const = nullptr;
  bool guarded = true;
};
std::span<const Route> Routes();

// The committed description of the interface.
std::string_view OpenApiJson();

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_H_
