// The writer thread: takes a snapshot of the training state and writes it as a checkpoint while training
// continues.
#include "train/background_save.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <utility>

#include "base/error.h"

namespace lattice::train {
namespace {

// The lowest priority: the writer uses the gaps in which training's threads wait for the slowest of them. A
// checkpoint of the 110M model delays training by 0.2 s; with a niceness of 10 it is 1.2 s.
constexpr int kNice = 19;

// Signals are handled by the thread that trains.
void BlockSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

BackgroundSave::BackgroundSave(std::filesystem::path run, int64_t keep_last, int64_t keep_every,
                               dist::Group* group, std::function<void()> before)
    : run_(std::move(run)), keep_last_(keep_last), keep_every_(keep_every), before_(std::move(before)) {
  if (group != nullptr) exchange_.emplace(*group);
  thread_ = std::thread([this] { Loop(); });
}

BackgroundSave::~BackgroundSave() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool BackgroundSave::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void BackgroundSave::Start(const CheckpointParts& parts) {
  Check(!busy(), "[checkpoint] a save was started while another is in progress");
  snapshot_.Take(parts);
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
    outcome_.reset();
  }
  changed_.notify_all();
}

std::optional<SaveOutcome> BackgroundSave::Poll() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

bool BackgroundSave::Wait(double seconds) {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return !busy_; };
  if (std::isfinite(seconds)) return changed_.wait_for(lock, std::chrono::duration<double>(seconds), idle);
  changed_.wait(lock, idle);
  return true;
}

SaveOutcome BackgroundSave::Write() {
  SaveOutcome outcome;
  outcome.step = snapshot_.trainer.step;
  try {
    outcome.checkpoint = SaveCheckpoint(run_, snapshot_, exchange_ ? &*exchange_ : nullptr, before_);
    if (snapshot_.shard.rank == 0) PruneCheckpoints(run_, keep_last_, keep_every_);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

void BackgroundSave::Loop() {
  BlockSignals();
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || closing_; });
    if (!busy_) return;
    lock.unlock();
    SaveOutcome outcome = Write();
    lock.lock();
    outcome_ = std::move(outcome);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace lattice::train
