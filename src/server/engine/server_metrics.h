// The server's metrics, in the text format of Prometheus.
#ifndef LATTICE_SERVER_ENGINE_SERVER_METRICS_H_
#define LATTICE_SERVER_ENGINE_SERVER_METRICS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "server/http/http_counters.h"

namespace lattice::server {

// A histogram of seconds. May be used from any thread.
class Histogram {
 public:
  void Add(double seconds);
  // The histogram in the text format, under this name.
  std::string Text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   30};
  std::array<std::atomic<int64_t>, kBounds.size() + 1> counts_{};
  std::atomic<int64_t> nanoseconds_{0};
};

// Adds the time of its life to a histogram.
class Timer {
 public:
  explicit Timer(Histogram& histogram) : histogram_(histogram) {}
  ~Timer() { histogram_.Add(std::chrono::duration<double>(Clock::now() - start_).count()); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  Histogram& histogram_;
  const Clock::time_point start_ = Clock::now();
};

// All counters may be changed from any thread.
struct Metrics : http::HttpCounters {
  std::atomic<int64_t> prompt_tokens{0}, cached_tokens{0}, chosen_tokens{0};
  std::atomic<int64_t> steps{0}, rows{0};
  std::atomic<int64_t> rejected{0}, disconnected{0}, expired{0};
  std::atomic<int64_t> running{0}, waiting{0};
  // Of the store of sessions.
  std::atomic<int64_t> store_reads{0}, store_writes{0}, store_written_bytes{0}, store_failures{0},
      store_lost{0}, store_conflicts{0}, sessions_left_memory{0}, replayed{0};
  std::atomic<int64_t> over_quota{0}, log_lines_dropped{0};
  Histogram first_token, between_tokens, store_seconds, queue_seconds;

  // Counts an answer that was sent.
  void CountAnswer(const std::string& route, int status);
  std::string AnswersText() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_;
};

// One metric in the text format.
std::string MetricText(const std::string& name, const std::string& type, const std::string& help,
                       int64_t value);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_ENGINE_SERVER_METRICS_H_
