// Decides when to save a checkpoint, and retries when saving fails.
#include "train/saving.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/format.h"

namespace lattice::train {
namespace {

constexpr double kFirstPause = 1;
constexpr double kLongestPause = 60;
constexpr double kFinalPause = 2;
// Seconds to wait for an earlier save: the steps of a small model may be shorter than a save.
constexpr double kMomentToWait = 2;

std::chrono::steady_clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

Saving::Saving(const std::filesystem::path& run, const model::TrainConfig& config,
               std::function<void(const std::string&)> line, std::function<bool()> give_up,
               dist::Group* group, std::function<void()> before)
    : config_(config),
      group_(group),
      line_(std::move(line)),
      give_up_(std::move(give_up)),
      save_(run, config.keep_last, config.keep_every, group, std::move(before)) {}

bool Saving::Anywhere(bool here) const { return group_ == nullptr ? here : group_->Any(here); }

void Saving::SetNewest(const std::filesystem::path& checkpoint, int64_t step) {
  newest_ = checkpoint;
  newest_step_ = step;
}

void Saving::Retry(const SaveOutcome& outcome) {
  pause_ = failing_ ? std::min(2 * pause_, kLongestPause) : kFirstPause;
  failing_ = true;
  next_attempt_ = Clock::now() + Seconds(pause_);
  if (outcome.error != last_error_) {
    line_(StrCat("no checkpoint at step ", outcome.step, ", training goes on and tries again: ",
                 outcome.error, newest_.empty() ? "" : StrCat("; the newest is ", newest_.string())));
  }
  last_error_ = outcome.error;
}

void Saving::HandleOutcome() {
  const std::optional<SaveOutcome> outcome = save_.Poll();
  if (!outcome) return;
  if (!outcome->error.empty()) return Retry(*outcome);
  if (failing_) line_(StrCat("the checkpoint of step ", outcome->step, " is saved"));
  failing_ = false;
  last_error_.clear();
  SetNewest(outcome->checkpoint, outcome->step);
}

void Saving::AfterStep(const Learner& learner) {
  HandleOutcome();
  const int64_t step = learner.state().step;
  const bool due = config_.save_every > 0 && step % config_.save_every == 0 && step < config_.steps;
  const bool again = failing_ && Clock::now() >= next_attempt_;
  wanted_ = Anywhere(wanted_ || due || again);
  if (!wanted_) return;
  if (Anywhere(!save_.Wait(due && !slow_ ? kMomentToWait : 0))) {
    if (due && !std::exchange(slow_, true)) {
      line_(StrCat("the disk is slow: an earlier checkpoint is still being written at step ", step,
                   "; the next follows as soon as it is done"));
    }
    return;
  }
  HandleOutcome();
  if (due) slow_ = false;
  wanted_ = false;
  save_.Start(learner.Parts());
}

void Saving::WaitForSave() {
  save_.Wait();
  HandleOutcome();
}

void Saving::Finish(const Learner& learner) {
  WaitForSave();
  if (newest_step_ == learner.state().step) return;
  const Clock::time_point deadline = Clock::now() + Seconds(config_.save_patience);
  while (true) {
    save_.Start(learner.Parts());
    save_.Wait();
    const std::optional<SaveOutcome> outcome = save_.Poll();
    if (!Anywhere(!outcome->error.empty())) return SetNewest(outcome->checkpoint, outcome->step);
    Check(!Anywhere(Clock::now() >= deadline || give_up_()), outcome->error,
          "; the last checkpoint is not saved",
          newest_.empty() ? "" : StrCat(", the newest is ", newest_.string()));
    if (outcome->error != last_error_) {
      line_(StrCat("cannot save the last checkpoint, trying again for ", DurationText(config_.save_patience),
                   ": ", outcome->error));
    }
    last_error_ = outcome->error;
    std::this_thread::sleep_for(Seconds(kFinalPause));
  }
}

}  // namespace lattice::train
