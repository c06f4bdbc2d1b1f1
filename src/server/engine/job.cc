// The bounded queue of events between the engine's thread and the workers that answer a request.
#include "server/engine/job.h"

#include <utility>

namespace lattice::server {
namespace {

// A job is full with this many events or tokens waiting to be taken.
constexpr size_t kMostEvents = 64, kMostTokens = 256;

}  // namespace

Job::Job(size_t tasks, ClientId client, Clock::time_point deadline, std::shared_ptr<JobListener> listener)
    : client_(client), many_(tasks > 1), deadline_(deadline), held_(tasks), listener_(std::move(listener)) {}

std::optional<Event> Job::Take() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  tokens_ -= event.tokens.size();
  return event;
}

bool Job::Finished() const {
  const std::lock_guard lock(mutex_);
  return held_ == 0 && events_.empty();
}

std::exception_ptr Job::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Job::Disown() noexcept {
  std::shared_ptr<JobListener> listener;  // declared first: destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  listener = std::move(listener_);
}

bool Job::Full() const {
  const std::lock_guard lock(mutex_);
  return events_.size() >= kMostEvents || tokens_ >= kMostTokens;
}

void Job::Push(Event event) {
  std::shared_ptr<JobListener> listener;
  {
    const std::lock_guard lock(mutex_);
    const size_t tokens = event.tokens.size();
    events_.push_back(std::move(event));
    tokens_ += tokens;
    listener = listener_;
  }
  listener->JobChanged();
}

void Job::Fail(std::exception_ptr reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr) error_ = std::move(reason);
  failed_ = true;
}

void Job::Release() noexcept {
  std::shared_ptr<JobListener> listener;
  {
    const std::lock_guard lock(mutex_);
    if (--held_ == 0) listener = std::move(listener_);
  }
  if (listener) listener->JobChanged();
}

}  // namespace lattice::server
