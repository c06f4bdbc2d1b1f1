// Writes checkpoints in a background thread while training continues.
#ifndef LATTICE_TRAIN_BACKGROUND_SAVE_H_
#define LATTICE_TRAIN_BACKGROUND_SAVE_H_

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "train/checkpoint.h"
#include "train/save_exchange.h"

namespace lattice::train {

// How a save ended.
struct SaveOutcome {
  int64_t step = 0;
  std::filesystem::path checkpoint;
  std::string error;  // empty: the checkpoint is on disk
};

// The methods may only be called by the thread that trains. Holds one copy of the training state, allocated
// at the first save and reused by the next ones.
class BackgroundSave {
 public:
  // With a group every rank writes its shard of the same checkpoints. Rank 0's writer calls `before` ahead of
  // each checkpoint; when that throws Error, none is written.
  BackgroundSave(std::filesystem::path run, int64_t keep_last, int64_t keep_every,
                 dist::Group* group = nullptr, std::function<void()> before = {});
  // Waits for a save in progress.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  bool busy() const;

  // Copies the parts and returns; the copy is written in the background. Call only when not busy().
  void Start(const CheckpointParts& parts);

  // The outcome of the last finished save; each outcome is returned once.
  std::optional<SaveOutcome> Poll();

  // Waits until the save is done, at most `seconds`. Returns whether it is.
  bool Wait(double seconds = std::numeric_limits<double>::infinity());

 private:
  void Loop();
  SaveOutcome Write();

  const std::filesystem::path run_;
  const int64_t keep_last_, keep_every_;
  std::optional<SaveExchange> exchange_;  // used by the writer
  const std::function<void()> before_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool closing_ = false;
  Snapshot snapshot_;  // owned by the writer while busy_, else by the trainer
  std::optional<SaveOutcome> outcome_;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_BACKGROUND_SAVE_H_
