// The policy of saving checkpoints: when to save, and what to do when that fails. Training continues, older
// checkpoints stay, and saving is retried.
#ifndef LATTICE_TRAIN_SAVING_H_
#define LATTICE_TRAIN_SAVING_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "model/config.h"
#include "train/background_save.h"
#include "train/learner.h"

namespace lattice::train {

class Saving {
 public:
  // With a group all ranks save together, and agree on when. `line` prints a message for the user. Finish stops
  // retrying when `give_up` returns true. Rank 0 calls `before` ahead of each checkpoint, in the thread that writes
  // it; when that throws Error, none is written. What they refer to must outlive the object.
  Saving(const std::filesystem::path& run, const model::TrainConfig& config,
         std::function<void(const std::string&)> line, std::function<bool()> give_up,
         dist::Group* group = nullptr, std::function<void()> before = {});

  // Call after every step: starts a save when one is due, and reports how earlier ones ended. If an earlier
  // save is still being written, training waits for it a moment, once; on a disk that is slower than that,
  // training continues and the save starts as soon as the earlier one has ended.
  void AfterStep(const Learner& learner);

  // Saves and waits until the checkpoint is on disk, retrying for config.save_patience seconds. Throws Error
  // when that fails.
  void Finish(const Learner& learner);

  // Waits for a save in progress, so that newest() is up to date.
  void WaitForSave();

  // The newest checkpoint on disk and its step; empty and -1 when there is none.
  const std::filesystem::path& newest() const { return newest_; }
  int64_t newest_step() const { return newest_step_; }
  void SetNewest(const std::filesystem::path& checkpoint, int64_t step);

 private:
  using Clock = std::chrono::steady_clock;
  void HandleOutcome();
  void Retry(const SaveOutcome& outcome);
  // Whether it is so on this rank, or on any.
  bool Anywhere(bool here) const;

  const model::TrainConfig config_;
  dist::Group* const group_;
  std::function<void(const std::string&)> line_;
  std::function<bool()> give_up_;
  bool wanted_ = false;
  bool slow_ = false;
  bool failing_ = false;
  double pause_ = 0;  // seconds until the next attempt, after a failure
  Clock::time_point next_attempt_ = {};
  std::string last_error_;
  std::filesystem::path newest_;
  int64_t newest_step_ = -1;
  BackgroundSave save_;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SAVING_H_
