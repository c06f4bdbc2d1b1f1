// Checkpoints written by a thread of their own while training goes on.
#ifndef LATTICE_TRAIN_BACKGROUND_SAVE_H_
#define LATTICE_TRAIN_BACKGROUND_SAVE_H_

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "train/checkpoint.h"

namespace lattice::train {

// How a save ended.
struct SaveOutcome {
  int64_t step = 0;
  std::filesystem::path checkpoint;
  std::string error;  // empty: it is on disk
};

// Its methods are for one thread, the one that trains. Holds one copy of the parts, made at the first save
// and used again by the next ones.
class BackgroundSave {
 public:
  BackgroundSave(std::filesystem::path run, int64_t keep_last, int64_t keep_every);
  // Waits for a save in progress.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  bool busy() const;

  // Copies the parts and returns; they are written behind. Only when not busy().
  void Start(const CheckpointParts& parts);

  // The outcome of the last save that ended, once.
  std::optional<SaveOutcome> Poll();

  // Waits until not busy(), or for so many seconds; true when not busy().
  bool Wait(double seconds = std::numeric_limits<double>::infinity());

 private:
  void Loop();
  SaveOutcome Write() const;

  const std::filesystem::path run_;
  const int64_t keep_last_, keep_every_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool closing_ = false;
  Snapshot snapshot_;  // the writer's while busy_, else the trainer's
  std::optional<SaveOutcome> outcome_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_BACKGROUND_SAVE_H_
