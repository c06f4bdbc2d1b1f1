#include "server/server.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "model/mixers.h"
#include "server/front_desk.h"
#include "server/security.h"

namespace lattice::server {

namespace {

// A transformer keeps keys and values of every token: texts are as long as this allows.
constexpr int64_t kLargestCache = int64_t{256} << 20;

void LimitCache(const model::ModelConfig& config, RequestLimits& limits) {
  if (!model::FindMixer(config.mixer).attention) return;
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
        scheduler({served, cache, metrics}, options.scheduler, options.threads),
        api(served, scheduler, sessions, cache, metrics, options.api),
        desk(api, scheduler, metrics,
             {options.key, IsLoopback(options.host), options.body_bytes, StateBytes()}),
        http(options.http, metrics) {
    desk.Install(http);
  }

  // A state that is sent to the server is no larger than one that comes from it.
  int64_t StateBytes() const {
    return std::max(options.body_bytes, 2 * runtime::Session(served.model).Bytes() + (int64_t{1} << 20));
  }

  const ServerOptions options;
  const ServedModel served;
  Metrics metrics;
  runtime::PrefixCache cache;
  SessionStore sessions;
  Scheduler scheduler;
  Api api;
  FrontDesk desk;
  HttpServer http;
  std::thread accepting;
};

void CheckOptions(const ServerOptions& options) {
  Check(!options.key.empty() || IsLoopback(options.host), "[serve] ", options.host,
        " can be reached from other machines, and there is no key; set LATTICE_API_KEY or pass "
        "--api-key-file, or "
        "stay at 127.0.0.1");
}

Server::Server(ServedModel served, ServerOptions options) {
  CheckOptions(options);
  LimitCache(served.model->config(), options.api.request);
  options.api.request.vocabulary = served.tokenizer->vocab_size();
  options.api.request.choices =
      std::min(options.api.request.choices, options.scheduler.running + options.scheduler.waiting);
  parts_ = std::make_unique<Parts>(std::move(served), std::move(options));
}

Server::~Server() { Stop(); }

int Server::Start() {
  const int port = parts_->http.Bind(parts_->options.host, parts_->options.port);
  parts_->accepting = std::thread([http = &parts_->http] { http->Serve(); });
  // Shutdown before the loop runs would be lost.
  while (!parts_->http.is_running()) std::this_thread::yield();
  return port;
}

void Server::Stop() {
  if (!parts_->accepting.joinable()) return;
  parts_->http.Shutdown();
  parts_->scheduler.Stop(Clock::now() + parts_->options.grace);
  parts_->accepting.join();
}

const Metrics& Server::metrics() const { return parts_->metrics; }

}  // namespace lattice::server
