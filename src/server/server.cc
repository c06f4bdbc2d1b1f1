// Assembles the server: model, caches, scheduler, API, router and HTTP server, and the order in which they
// start and stop.
#include "server/server.h"

#include <algorithm>

#include "base/error.h"
#include "server/api/prompts.h"
#include "server/api/router.h"
#include "server/api/security.h"
#include "text/utf8.h"

namespace lattice::server {

namespace {

// Extra time for sending the last answers after the grace time.
constexpr std::chrono::seconds kLastAnswers{1};

}  // namespace

struct Server::Parts {
  Parts(ServedModel model, ServerOptions with)
      : options(std::move(with)),
        served(std::move(model)),
        tokens(*served.tokenizer),
        cache(options.cache_bytes),
        sessions(options.sessions, served.model,
                 {options.store, options.lease, options.durability, {options.seal.key, options.compress}},
                 metrics),
        accounts(options.accounts.empty() ? std::vector<Account>{Account{"", options.key}}
                                          : options.accounts),
        log(options.access_log, metrics),
        budget(options.http.bytes),
        workers(options.http.workers),
        // One more, because one of a pool only delivers.
        store_workers(options.store ? std::make_unique<http::WorkerPool>(options.store_workers + 1)
                                    : nullptr),
        scheduler({served, cache, metrics, tokens}, options.scheduler, options.threads),
        api({served, scheduler, sessions, cache, metrics, workers, store_workers ? *store_workers : workers,
             options.http.waiting_requests, budget, options.seal, accounts},
            options.api),
        router({api, metrics, log}, scheduler, accounts,
               {IsLoopback(options.host), options.body_bytes, StateBytes()}),
        http_server(options.http, router, workers, budget, metrics) {}

  // The largest body of an uploaded state, which is no larger than one that was downloaded.
  int64_t StateBytes() const {
    return std::max(options.body_bytes, 2 * runtime::Session(served.model).Bytes() + (int64_t{1} << 20));
  }

  const ServerOptions options;
  const ServedModel served;
  Metrics metrics;
  const text::grammar::TokenTable tokens;
  runtime::PrefixCache cache;
  SessionStore sessions;
  Accounts accounts;
  AccessLog log;
  http::ByteBudget budget;
  http::WorkerPool workers;
  std::unique_ptr<http::WorkerPool> store_workers;  // null without a store
  Scheduler scheduler;
  Api api;
  Router router;
  http::HttpServer http_server;
  bool started = false;
};

void CheckOptions(const ServerOptions& options) {
  Check(options.key.empty() || options.accounts.empty(),
        "[serve] there are a key and a file of keys; give one of them");
  Check(!options.key.empty() || !options.accounts.empty() || IsLoopback(options.host), "[serve] ",
        options.host,
        " can be reached from other machines, and there is no key; set LATTICE_API_KEY or pass "
        "--api-key-file or --keys-file, or stay at 127.0.0.1");
}

int64_t ClientShare(int64_t all) { return all - all / 4; }

Server::Server(ServedModel served, ServerOptions options) {
  CheckOptions(options);
  Check(text::CountInvalidUtf8(served.name) == 0 && text::IncompleteTail(served.name) == 0,
        "[serve] the model's name is not UTF-8; give one that is with --name");
  if (!options.accounts.empty() && options.scheduler.client == 0)
    options.scheduler.client = ClientShare(options.scheduler.Places());
  if (!IsLoopback(options.host)) {
    // Limits for a single client: nobody may take everything. On a loopback address all clients look the
    // same, so there are none.
    if (options.http.client_connections == 0)
      options.http.client_connections = ClientShare(options.http.connections);
    if (options.scheduler.client == 0) options.scheduler.client = ClientShare(options.scheduler.Places());
  }
  LimitToModel(served, options.api.request);
  options.api.request.choices = std::min(options.api.request.choices, options.scheduler.ManyPlaces());
  parts_ = std::make_unique<Parts>(std::move(served), std::move(options));
}

Server::~Server() {
  Stop();
  // Nothing may be computed or answered any more when the parts are destroyed.
  parts_->scheduler.Stop(Clock::now());
  if (parts_->store_workers) parts_->store_workers->Stop();
  parts_->workers.Stop();
}

void Server::StartDraining() { parts_->api.StartDraining(); }

int Server::Start() {
  const int port = parts_->http_server.Start(parts_->options.host, parts_->options.port);
  parts_->started = true;
  return port;
}

void Server::Stop() {
  if (!parts_->started) return;
  const Clock::time_point deadline = Clock::now() + parts_->options.grace;
  StartDraining();
  parts_->http_server.Stop();
  parts_->scheduler.Stop(deadline);
  parts_->http_server.Join(std::max(deadline, Clock::now()) + kLastAnswers);
  parts_->sessions.Drain();
  parts_->started = false;
}

const Metrics& Server::metrics() const { return parts_->metrics; }

}  // namespace lattice::server
