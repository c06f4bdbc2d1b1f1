// Measures throughput and latency of the server under load, overload and in a soak test.
#include "serve/figures.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "runtime/session.h"
#include "serve/client.h"
#include "server/server.h"

namespace lattice::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double Quantile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(part * last + 0.5)];
}

// Makes request bodies with prompts that all differ, so that the prefix cache does not help.
class Requests {
 public:
  Requests(const server::ServedModel& served, const ServeBenchOptions& options)
      : random_(1), vocabulary_(served.tokenizer->vocab_size()), options_(options) {}

  std::string Next(bool stream) {
    const uint64_t number = next_++;
    std::vector<int64_t> prompt;
    for (int64_t i = 0; i < options_.prompt; ++i) {
      const uint64_t at = number * static_cast<uint64_t>(options_.prompt) + static_cast<uint64_t>(i);
      prompt.push_back(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(vocabulary_), at)));
    }
    const nlohmann::json body = {
        {"prompt", prompt}, {"max_tokens", options_.tokens}, {"seed", number}, {"stream", stream}};
    return body.dump();
  }

 private:
  const Random random_;
  const int64_t vocabulary_;
  const ServeBenchOptions& options_;
  std::atomic<uint64_t> next_{0};
};

// Collects the times of clients on several threads.
class Collector {
 public:
  void Add(const StreamTimes& times) {
    const std::lock_guard lock(mutex_);
    if (times.status == 429) {
      ++figures_.rejected;
      rejections_.push_back(times.answered);
    } else if (times.status != 200) {
      ++figures_.failed;
    } else {
      ++figures_.completed;
      firsts_.push_back(times.first);
      gaps_.insert(gaps_.end(), times.gaps.begin(), times.gaps.end());
    }
  }
  LoadFigures Finish(double seconds, int64_t tokens) {
    const std::lock_guard lock(mutex_);
    figures_.seconds = seconds;
    figures_.tokens_per_second = static_cast<double>(tokens) / seconds;
    figures_.first_token_p50 = Quantile(firsts_, 0.5);
    figures_.first_token_p99 = Quantile(firsts_, 0.99);
    figures_.between_tokens_p99 = Quantile(gaps_, 0.99);
    figures_.rejection_p50 = Quantile(rejections_, 0.5);
    figures_.rejection_p99 = Quantile(rejections_, 0.99);
    figures_.rejection_max = Quantile(rejections_, 1);
    return figures_;
  }

 private:
  std::mutex mutex_;
  LoadFigures figures_;
  std::vector<double> firsts_, gaps_, rejections_;
};

server::ServerOptions Options(const ServeBenchOptions& options) {
  server::ServerOptions out;
  out.port = 0;
  out.threads = options.threads;
  out.grace = std::chrono::seconds(0);
  out.sessions.count = options.sessions + 1;
  out.sessions.bytes = int64_t{1} << 40;
  return out;
}

template <typename Work>
void OnThreads(int64_t count, const Work& work) {
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

LoadFigures AllAtOnce(const server::ServedModel& served, const ServeBenchOptions& options) {
  server::ServerOptions with = Options(options);
  with.scheduler.running = options.streams;
  server::Server server(served, with);
  const int port = server.Start();
  Requests requests(served, options);
  Collector collector;
  const Clock::time_point start = Clock::now();
  OnThreads(options.streams, [&] { collector.Add(RunStream(port, requests.Next(true))); });
  return collector.Finish(Since(start), server.metrics().chosen_tokens);
}

// `clients` clients send requests in a loop. The tokens are counted in the middle of the time, when all
// clients are busy.
LoadFigures Repeatedly(const server::ServedModel& served, const ServeBenchOptions& options, int64_t clients) {
  server::ServerOptions with = Options(options);
  with.scheduler.running = options.places / 2;
  with.scheduler.waiting = options.places - with.scheduler.running;
  server::Server server(served, with);
  const int port = server.Start();
  Requests requests(served, options);
  Collector collector;
  std::atomic<bool> stop = false;
  int64_t tokens = 0;
  double seconds = 0;
  std::thread counting([&] {
    const auto part = std::chrono::duration<double>(options.seconds / 5);
    std::this_thread::sleep_for(part);
    const Clock::time_point start = Clock::now();
    const int64_t before = server.metrics().chosen_tokens;
    std::this_thread::sleep_for(4 * part);
    tokens = server.metrics().chosen_tokens - before;
    seconds = Since(start);
    stop = true;
  });
  OnThreads(clients, [&] {
    while (!stop) {
      const StreamTimes times = RunStream(port, requests.Next(true));
      collector.Add(times);
      const Clock::time_point again = Clock::now() + std::chrono::seconds(1);
      while (times.status == 429 && !stop && Clock::now() < again)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  counting.join();
  return collector.Finish(seconds, tokens);
}

void IdleSessions(const server::ServedModel& served, const ServeBenchOptions& options, ServeFigures& out) {
  server::Server server(served, Options(options));
  const int port = server.Start();
  const std::string first = Ask(port, "POST", "/v1/sessions", R"({"prompt": "a"})");
  Check(!first.empty(), "[bench] the server made no session");
  out.session_bytes = nlohmann::json::parse(first)["bytes"];
  const int64_t before = ResidentBytes();
  for (int64_t i = 0; i < options.sessions; ++i) {
    if (!Ask(port, "POST", "/v1/sessions", R"({"prompt": "a"})").empty()) ++out.sessions;
  }
  out.sessions_grown = ResidentBytes() - before;
}

std::vector<int64_t> Soak(const server::ServedModel& served, const ServeBenchOptions& options) {
  constexpr int64_t kClients = 16;
  server::ServerOptions with = Options(options);
  with.cache_bytes = int64_t{8} << 20;  // full soon, so that its growth is not mistaken for a leak
  server::Server server(served, with);
  const int port = server.Start();
  Requests requests(served, options);
  std::atomic<bool> stop = false;
  std::vector<int64_t> resident;
  std::thread watching([&] {
    for (int tenth = 0; tenth < 10; ++tenth) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.soak_seconds / 10));
      resident.push_back(ResidentBytes());
    }
    stop = true;
  });
  std::atomic<uint64_t> turn = 0;
  OnThreads(kClients, [&] {
    // Every fourth request creates a session, continues it and deletes it.
    while (!stop) {
      if (turn++ % 4 != 0) {
        RunStream(port, requests.Next(true));
        continue;
      }
      const std::string session = Ask(port, "POST", "/v1/sessions", R"({"prompt": "once"})");
      if (session.empty()) continue;
      const std::string id = nlohmann::json::parse(session)["id"];
      RunStream(port, nlohmann::json{{"session", id}, {"max_tokens", 8}, {"stream", true}}.dump());
      Ask(port, "POST", "/v1/sessions/" + id + "/rewind", R"({"position": 1})");
      Ask(port, "DELETE", "/v1/sessions/" + id, "");
    }
  });
  watching.join();
  return resident;
}

}  // namespace

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

ServeFigures MeasureServe(const server::ServedModel& served, const ServeBenchOptions& options) {
  ServeFigures out;
  if (options.streams > 0) out.streams = AllAtOnce(served, options);
  if (options.places > 0 && options.seconds > 0) {
    out.full = Repeatedly(served, options, options.places);
    out.overloaded = Repeatedly(served, options, 4 * options.places);
  }
  if (options.sessions > 0) IdleSessions(served, options, out);
  if (options.soak_seconds > 0) out.soak = Soak(served, options);
  return out;
}

}  // namespace lattice::bench
