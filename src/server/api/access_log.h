// The log of answered requests: one JSON object a line.
#ifndef LATTICE_SERVER_API_ACCESS_LOG_H_
#define LATTICE_SERVER_API_ACCESS_LOG_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "server/engine/server_metrics.h"

namespace lattice::server {

// What is known of an answered request. Neither texts, nor keys, nor ids of sessions are logged.
struct AccessEntry {
  std::string request_id, account, method, route, session;  // session: the begin of the id's SHA-256
  int status = 0;                                           // 0: the connection ended without an answer
  double seconds = 0;
  int64_t prompt_tokens = 0, chosen_tokens = 0;
};

// Lines are written by a thread of their own. When it falls behind by kMostLines, lines are dropped and
// counted.
class AccessLog {
 public:
  static constexpr size_t kMostLines = 10'000;

  // An empty path: no log; "-": standard error. Throws Error when the file cannot be opened.
  AccessLog(const std::filesystem::path& path, Metrics& metrics);
  // Writes what is left.
  ~AccessLog();

  bool on() const { return descriptor_ >= 0; }
  void Add(const AccessEntry& entry) noexcept;

 private:
  void Loop();

  int descriptor_ = -1;
  Metrics& metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool stop_ = false;
  std::thread thread_;
};

// A request's id: the client's X-Request-Id, if it is 1 to 64 letters, digits, '-', '_' or '.'; else a random
// one.
std::string RequestIdOf(const std::string* given);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_ACCESS_LOG_H_
