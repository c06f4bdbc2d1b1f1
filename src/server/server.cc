// Assembles the server: model, caches, scheduler, API, router and HTTP server, and the order in which they
// start and stop.
#include "server/server.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/registry.h"
#include "server/api/router.h"
#include "server/api/security.h"
#include "text/utf8.h"

namespace lattice::server {

namespace {

// Extra time for sending the last answers after the grace time.
constexpr std::chrono::seconds kLastAnswers{1};

// The largest KV cache of one sequence of a transformer; it bounds the length of its texts.
constexpr int64_t kLargestCache = int64_t{256} << 20;

void LimitCache(const model::ModelConfig& config, RequestLimits& limits) {
  if (!kernels::FindMemory(config.mixer).attention) return;
  const int64_t token_bytes = config.layers * config.width * 2 * static_cast<int64_t>(sizeof(float));
  const int64_t tokens = std::max<int64_t>(1, kLargestCache / token_bytes / 2);
  limits.prompt_tokens = std::min(limits.prompt_tokens, tokens);
  limits.max_tokens = std::min(limits.max_tokens, tokens);
}

}  // namespace

struct Server::Parts {
  Parts(ServedModel model, ServerOptions with)
      : options(std::move(with)),
        served(std::move(model)),
        cache(options.cache_bytes),
        sessions(options.sessions),
        budget(options.http.bytes),
        workers(options.http.workers),
        scheduler({served, cache, metrics}, options.scheduler, options.threads),
        api({served, scheduler, sessions, cache, metrics, workers, budget, options.seal}, options.api),
        router(api, scheduler, metrics,
               {options.key, IsLoopback(options.host), options.body_bytes, StateBytes()}),
        http_server(options.http, router, workers, budget, metrics) {}

  // The largest body of an uploaded state, which is no larger than one that was downloaded.
  int64_t StateBytes() const {
    return std::max(options.body_bytes, 2 * runtime::Session(served.model).Bytes() + (int64_t{1} << 20));
  }

  const ServerOptions options;
  const ServedModel served;
  Metrics metrics;
  runtime::PrefixCache cache;
  SessionStore sessions;
  http::ByteBudget budget;
  http::WorkerPool workers;
  Scheduler scheduler;
  Api api;
  Router router;
  http::HttpServer http_server;
  bool started = false;
};

void CheckOptions(const ServerOptions& options) {
  Check(!options.key.empty() || IsLoopback(options.host), "[serve] ", options.host,
        " can be reached from other machines, and there is no key; set LATTICE_API_KEY or pass "
        "--api-key-file, or "
        "stay at 127.0.0.1");
}

int64_t ClientShare(int64_t all) { return all - all / 4; }

Server::Server(ServedModel served, ServerOptions options) {
  CheckOptions(options);
  Check(text::CountInvalidUtf8(served.name) == 0 && text::IncompleteTail(served.name) == 0,
        "[serve] the model's name is not UTF-8; give one that is with --name");
  if (!IsLoopback(options.host)) {
    // Limits for a single client: nobody may take everything. On a loopback address all clients look the
    // same, so there are none.
    if (options.http.client_connections == 0)
      options.http.client_connections = ClientShare(options.http.connections);
    if (options.scheduler.client == 0) options.scheduler.client = ClientShare(options.scheduler.Places());
  }
  LimitCache(served.model->config(), options.api.request);
  options.api.request.vocabulary = served.tokenizer->vocab_size();
  options.api.request.choices = std::min(options.api.request.choices, options.scheduler.ManyPlaces());
  parts_ = std::make_unique<Parts>(std::move(served), std::move(options));
}

Server::~Server() {
  Stop();
  // Nothing may be computed or answered any more when the parts are destroyed.
  parts_->scheduler.Stop(Clock::now());
  parts_->workers.Stop();
}

int Server::Start() {
  const int port = parts_->http_server.Start(parts_->options.host, parts_->options.port);
  parts_->started = true;
  return port;
}

void Server::Stop() {
  if (!parts_->started) return;
  const Clock::time_point deadline = Clock::now() + parts_->options.grace;
  parts_->http_server.Stop();
  parts_->scheduler.Stop(deadline);
  parts_->http_server.Join(std::max(deadline, Clock::now()) + kLastAnswers);
  parts_->started = false;
}

const Metrics& Server::metrics() const { return parts_->metrics; }

}  // namespace lattice::server
