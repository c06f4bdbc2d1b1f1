#include "server/job.h"

namespace lattice::server {
namespace {

// Events and tokens that may wait for their client.
constexpr size_t kMostEvents = 64, kMostTokens = 256;

}  // namespace

Job::Job(size_t tasks, int client, Clock::time_point deadline)
    : client_(client), deadline_(deadline), unfinished_(tasks), held_(tasks) {}

std::optional<Event> Job::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !events_.empty() || unfinished_ == 0 || error_ || held_ == 0; });
  if (!events_.empty()) {
    Event event = std::move(events_.front());
    events_.pop_front();
    tokens_ -= event.tokens.size();
    return event;
  }
  if (error_) throw *error_;
  return std::nullopt;
}

void Job::WaitReleased() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return held_ == 0; });
}

bool Job::Full() const {
  const std::lock_guard lock(mutex_);
  return events_.size() >= kMostEvents || tokens_ >= kMostTokens;
}

void Job::Push(Event event) {
  const std::lock_guard lock(mutex_);
  if (event.reason != nullptr) --unfinished_;
  tokens_ += event.tokens.size();
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void Job::Fail(const ApiError& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  cancelled_ = true;
  changed_.notify_all();
}

void Job::Release() {
  const std::lock_guard lock(mutex_);
  --held_;
  changed_.notify_all();
}

}  // namespace lattice::server
