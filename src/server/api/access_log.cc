// Writes the access log beside the requests.
#include "server/api/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "server/engine/random_id.h"

namespace lattice::server {
namespace {

// "2026-01-31T12:00:00.123Z"
std::string TimeText() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string fraction = std::to_string(1000 + ms);
  fraction[0] = '.';
  return std::string(text, size) + fraction + "Z";
}

}  // namespace

std::string RequestIdOf(const std::string* given) {
  const auto plain = [](char c) { return IsDigit(c) || IsLetter(c) || c == '-' || c == '_' || c == '.'; };
  if (given != nullptr && !given->empty() && given->size() <= 64 &&
      std::all_of(given->begin(), given->end(), plain))
    return *given;
  return RandomId("req-");
}

AccessLog::AccessLog(const std::filesystem::path& path, Metrics& metrics) : metrics_(metrics) {
  if (path.empty()) return;
  descriptor_ =
      path == "-" ? ::dup(2) : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  const int reason = errno;
  Check(descriptor_ >= 0, "[serve] cannot write the access log ", path.string(), ": ", SystemReason(reason));
  thread_ = std::thread([this] { Loop(); });
}

AccessLog::~AccessLog() {
  if (descriptor_ < 0) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
  ::close(descriptor_);
}

void AccessLog::Add(const AccessEntry& entry) noexcept {
  if (descriptor_ < 0) return;
  try {
    nlohmann::ordered_json line = {{"time", TimeText()},     {"request_id", entry.request_id},
                                   {"method", entry.method}, {"route", entry.route},
                                   {"status", entry.status}, {"ms", std::round(entry.seconds * 1e6) / 1e3}};
    if (!entry.account.empty()) line["account"] = entry.account;
    if (!entry.session.empty()) line["session"] = entry.session;
    if (entry.prompt_tokens > 0) line["prompt_tokens"] = entry.prompt_tokens;
    if (entry.chosen_tokens > 0) line["completion_tokens"] = entry.chosen_tokens;
    std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMostLines) {
      ++metrics_.log_lines_dropped;
      return;
    }
    lines_.push_back(std::move(text));
    changed_.notify_one();
  } catch (const std::exception&) {
    ++metrics_.log_lines_dropped;
  }
}

void AccessLog::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !lines_.empty(); });
    if (lines_.empty()) return;
    std::deque<std::string> taken = std::exchange(lines_, {});
    lock.unlock();
    std::string text;
    for (const std::string& line : taken) text += line;
    // A line that does not fit on the disk is lost; the server goes on.
    if (::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      metrics_.log_lines_dropped += static_cast<int64_t>(taken.size());
    lock.lock();
  }
}

}  // namespace lattice::server
