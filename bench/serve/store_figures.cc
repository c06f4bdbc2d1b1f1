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
  std::vector<double> first, whole;
  for (int round = 0; round < kRounds; ++round) {
    for (const std::string& id : ids) {
      const std::string body = json{{"session", id}, {"max_tokens", 1}, {"stream", true}}.dump();
      const Clock::time_point start = Clock::now();
      const StreamTimes times = RunStream(port, body);
      Check(times.status == 200, "[bench] a session was not resumed");
      if (round == 0) continue;
      whole.push_back(SecondsSince(start));
      first.push_back(times.first);
    }
  }
  std::sort(first.begin(), first.end());
  std::sort(whole.begin(), whole.end());
  out.resume_p50 = first[first.size() / 2];
  out.resume_p99 = first[first.size() - 1 - first.size() / 100];
  out.stored_p50 = whole[whole.size() / 2];
  const int64_t writes = server.metrics().store_writes;
  if (writes > 0)
    out.written_bytes =
        static_cast<double>(server.metrics().store_written_bytes) / static_cast<double>(writes);
}

// Tokens per second of `busy` sessions that are asked, one request after the other, all in memory.
double Busy(const server::ServedModel& served, const ServeBenchOptions& options, int64_t busy,
            const std::shared_ptr<server::store::StateStore>& store) {
  server::Server server(served, StoreOptions(options, store));
  const int port = server.Start();
  std::vector<std::string> ids;
  for (int64_t i = 0; i < busy; ++i)
    ids.push_back(NewSession(served, options, port, static_cast<uint64_t>(i)));
  // Sessions that began together would advance in step and be stored all at the same moment, so their first answers
  // are of different lengths.
  std::atomic<bool> stop = false;
  std::atomic<int64_t> apart = 0;
  std::vector<std::thread> clients;
  for (int64_t i = 0; i < busy; ++i)
    clients.emplace_back([&, i] {
      const auto ask = [&](int64_t tokens) {
        const json body = {{"session", ids[static_cast<size_t>(i)]}, {"max_tokens", tokens}};
        Ask(port, "POST", "/v1/completions", body.dump());
      };
      ask(1 + i * options.tokens / busy);
      ++apart;
      while (!stop) ask(options.tokens);
    });
  while (apart < busy) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Clock::time_point start = Clock::now();
  const int64_t before = server.metrics().chosen_tokens;
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const double rate = static_cast<double>(server.metrics().chosen_tokens - before) / SecondsSince(start);
  stop = true;
  for (std::thread& client : clients) client.join();
  return rate;
}

}  // namespace

std::vector<StoreFigures> MeasureStores(const server::ServedModel& served, const ServeBenchOptions& options,
                                        int64_t busy, const std::string& redis) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / server::RandomId("lattice-bench-store-");
  std::vector<StoreFigures> out;
  std::vector<std::shared_ptr<server::store::StateStore>> stores;
  for (const std::string& kind : {std::string("memory"), std::string("directory"), std::string("redis")}) {
    if (kind == "redis" && redis.empty()) continue;
    const std::string spec = kind == "directory" ? folder.string() : kind == "redis" ? redis : kind;
    stores.push_back(server::store::OpenStore(spec, {}));
    out.emplace_back().store = kind;
    Resume(served, options, stores.back(), out.back());
  }
  // In turn, so that a machine that becomes slower or faster does so for all of them.
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && busy > 0; ++round) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i].tokens_per_second.push_back(Busy(served, options, busy, stores[i]));
  }
  std::filesystem::remove_all(folder);
  return out;
}

ManyFigures MeasureManySessions(const server::ServedModel& served, const ServeBenchOptions& options,
                                int64_t count) {
  constexpr int64_t kClients = 16, kInMemory = 64, kResumed = 500, kParts = 10;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / server::RandomId("lattice-bench-many-");
  ManyFigures out;
  {
    server::store::StoreLimits limits;
    limits.bytes = int64_t{1} << 40;
    limits.sessions = count;
    server::ServerOptions with = StoreOptions(options, server::store::OpenStore(folder.string(), limits));
    with.sessions.count = kInMemory;
    server::Server server(served, with);
    const int port = server.Start();
    std::vector<std::string> ids(static_cast<size_t>(count));
    std::atomic<int64_t> failed = 0;
    const Clock::time_point start = Clock::now();
    for (int64_t part = 0; part < kParts; ++part) {
      std::vector<std::thread> clients;
      for (int64_t client = 0; client < kClients; ++client)
        clients.emplace_back([&, client] {
          for (int64_t i = part * count / kParts + client; i < (part + 1) * count / kParts; i += kClients) {
            const json body = {{"prompt", SomeTokens(served, options.prompt, static_cast<uint64_t>(i))}};
            const std::string made = Ask(port, "POST", "/v1/sessions", body.dump());
            if (made.empty()) {
              ++failed;
            } else {
              ids[static_cast<size_t>(i)] = json::parse(made)["id"];
            }
          }
        });
      for (std::thread& client : clients) client.join();
      out.resident_bytes.push_back(ResidentBytes());
    }
    out.seconds = SecondsSince(start);
    out.sessions = count - failed;
    out.failed = failed;
    out.stored_bytes = static_cast<double>(server.metrics().store_written_bytes) /
                       static_cast<double>(std::max<int64_t>(1, server.metrics().store_writes));
    const auto next = [&](json body) {
      body["max_tokens"] = 8;
      body["temperature"] = 0;
      const std::string answer = Ask(port, "POST", "/v1/completions", body.dump());
      return answer.empty() ? answer : json::parse(answer)["choices"][0]["text"].get<std::string>();
    };
    out.resumed = std::min(kResumed, count);
    for (int64_t i = 0; i < out.resumed; ++i) {
      const int64_t which = i * count / out.resumed;
      const json prompt = {{"prompt", SomeTokens(served, options.prompt, static_cast<uint64_t>(which))}};
      const std::string expected = next(prompt);
      if (expected.empty() || next({{"session", ids[static_cast<size_t>(which)]}}) != expected) ++out.wrong;
    }
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
