// Measures stores of sessions with a server and clients in one process.
#include "serve/store_figures.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "serve/client.h"
#include "server/engine/random_id.h"
#include "server/server.h"
#include "server/store/state_store.h"

namespace lattice::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int64_t> SomeTokens(const server::ServedModel& served, int64_t count, uint64_t seed) {
  const Random random(seed);
  const auto vocabulary = static_cast<uint64_t>(served.tokenizer->vocab_size());
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int64_t>(random.Below(vocabulary, static_cast<uint64_t>(i))));
  return tokens;
}

server::ServerOptions StoreOptions(const ServeBenchOptions& options,
                                   const std::shared_ptr<server::store::StateStore>& store) {
  server::ServerOptions out;
  out.port = 0;
  out.threads = options.threads;
  out.grace = std::chrono::seconds(0);
  out.store = store;
  out.cache_bytes = 0;
  return out;
}

std::string NewSession(const server::ServedModel& served, const ServeBenchOptions& options, int port,
                       uint64_t seed) {
  const json body = {{"prompt", SomeTokens(served, options.prompt, seed)}};
  const std::string made = Ask(port, "POST", "/v1/sessions", body.dump());
  Check(!made.empty(), "[bench] the server made no session");
  return json::parse(made)["id"];
}

// Sessions in turn, each idle since its last one; with a store only one fits into memory.
void Resume(const server::ServedModel& served, const ServeBenchOptions& options,
            const std::shared_ptr<server::store::StateStore>& store, StoreFigures& out) {
  constexpr int kSessions = 16, kRounds = 6;
  server::ServerOptions with = StoreOptions(options, store);
  if (store != nullptr) with.sessions.count = 1;
  server::Server server(served, with);
  const int port = server.Start();
  std::vector<std::string> ids;
  for (uint64_t i = 0; i < kSessions; ++i) ids.push_back(NewSession(served, options, port, i));
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    for (const std::string& id : ids) {
      const std::string body = json{{"session", id}, {"max_tokens", 1}}.dump();
      const Clock::time_point start = Clock::now();
      Check(!Ask(port, "POST", "/v1/completions", body).empty(), "[bench] a session was not resumed");
      if (round > 0) times.push_back(SecondsSince(start));
    }
  }
  std::sort(times.begin(), times.end());
  out.resume_p50 = times[times.size() / 2];
  out.resume_p99 = times[times.size() - 1 - times.size() / 100];
  const int64_t writes = server.metrics().store_writes;
  if (writes > 0)
    out.written_bytes =
        static_cast<double>(server.metrics().store_written_bytes) / static_cast<double>(writes);
}

// The tokens that `busy` sessions are asked for, one request after the other, all in memory.
void Busy(const server::ServedModel& served, const ServeBenchOptions& options, int64_t busy,
          const std::shared_ptr<server::store::StateStore>& store, StoreFigures& out) {
  server::Server server(served, StoreOptions(options, store));
  const int port = server.Start();
  std::vector<std::string> ids;
  for (int64_t i = 0; i < busy; ++i)
    ids.push_back(NewSession(served, options, port, static_cast<uint64_t>(i)));
  std::atomic<bool> stop = false;
  std::vector<std::thread> clients;
  for (const std::string& id : ids)
    clients.emplace_back([&, id] {
      const std::string body = json{{"session", id}, {"max_tokens", options.tokens}}.dump();
      while (!stop) Ask(port, "POST", "/v1/completions", body);
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 5));
  const Clock::time_point start = Clock::now();
  const int64_t before = server.metrics().chosen_tokens;
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  out.tokens_per_second = static_cast<double>(server.metrics().chosen_tokens - before) / SecondsSince(start);
  stop = true;
  for (std::thread& client : clients) client.join();
}

}  // namespace

std::vector<StoreFigures> MeasureStores(const server::ServedModel& served, const ServeBenchOptions& options,
                                        int64_t busy, const std::string& redis) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / server::RandomId("lattice-bench-store-");
  std::vector<StoreFigures> out;
  for (const std::string& kind : {std::string("memory"), std::string("directory"), std::string("redis")}) {
    if (kind == "redis" && redis.empty()) continue;
    const std::string spec = kind == "directory" ? folder.string() : kind == "redis" ? redis : kind;
    const std::shared_ptr<server::store::StateStore> store = server::store::OpenStore(spec, {});
    StoreFigures figures;
    figures.store = kind;
    Resume(served, options, store, figures);
    if (busy > 0) Busy(served, options, busy, store, figures);
    out.push_back(figures);
  }
  std::filesystem::remove_all(folder);
  return out;
}

LoadFigures MeasurePort(const server::ServedModel& served, const ServeBenchOptions& options, int port,
                        int64_t clients) {
  std::atomic<bool> stop = false, counting = false;
  std::atomic<int64_t> completed = 0, failed = 0, tokens = 0;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      for (uint64_t turn = 0; !stop; ++turn) {
        const json body = {
            {"prompt", SomeTokens(served, options.prompt, turn * 1000 + static_cast<uint64_t>(i))},
            {"max_tokens", options.tokens},
            {"stream", true}};
        const StreamTimes times = RunStream(port, body.dump());
        if (!counting) continue;
        ++(times.status == 200 ? completed : failed);
        if (times.status == 200) tokens += options.tokens;
      }
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 5));
  const Clock::time_point start = Clock::now();
  counting = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const double seconds = SecondsSince(start);
  LoadFigures out;
  out.completed = completed;
  out.failed = failed;
  out.seconds = seconds;
  out.tokens_per_second = static_cast<double>(tokens) / seconds;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace lattice::bench
