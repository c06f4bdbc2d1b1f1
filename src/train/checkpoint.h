// The checkpoints of a training run. A checkpoint is complete under its name, or not there at all.
//
// step-N/ holds the model: config.json, model.safetensors and the tokenizer's files (model/checkpoint.h,
// text/tokenizer.h). For resuming it also holds trainer.json (TrainerState, the checksums of all other files,
// and its own), optimizer.safetensors, and states.safetensors if states are carried over segments. Of n ranks
// that train together, rank r writes its part of the last two as optimizer-<r+1>-of-<n>.safetensors and
// states-<r+1>-of-<n>.safetensors; any number of ranks can go on from them.
#ifndef LATTICE_TRAIN_CHECKPOINT_H_
#define LATTICE_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/config.h"
#include "nn/language_model.h"
#include "text/tokenizer.h"
#include "train/low_rank.h"
#include "train/optimizer.h"
#include "train/spikes.h"
#include "train/tensor_file.h"

namespace lattice::train {

class SaveExchange;

// The part of the training state that is not tensors. Data order and learning rate are functions of the step,
// and random numbers are counter-based, so none of them has a state to save.
struct TrainerState {
  int64_t step = 0;     // steps done, skipped ones included
  int64_t updates = 0;  // steps applied
  int64_t tokens = 0;
  int64_t data_offset = 0;  // batches skipped by rollbacks: step s reads batch s + data_offset
  int64_t skipped = 0;      // steps not applied: not finite, or loss spikes
  int64_t skipped_in_a_row = 0;
  int64_t rollbacks = 0;
  LossStatistics losses;
  double elapsed = 0;     // seconds of training over all sessions
  std::string precision;  // "fp32" or "bf16"
  int64_t threads = 0;
  std::string data;  // fingerprint of the training tokens
};

// The place of a process among those that save together.
struct Shard {
  int rank = 0;
  int ranks = 1;
  int64_t first_micro = 0;  // number of its first micro-batch in the step
};

// References to everything that a checkpoint holds; `states` has one entry per micro-batch, or none.
struct CheckpointParts {
  const nn::LanguageModel& model;
  const AdamW& optimizer;
  const text::Tokenizer& tokenizer;
  const std::vector<nn::States>& states;
  TrainerState trainer;
  Shard shard = {};
  const LowRank* low_rank = nullptr;  // its tensors stand beside the moments
};

// A copy of the parts, so that training can continue while they are written. The tokenizer must outlive it.
struct Snapshot {
  // Reuses the tensors of the last snapshot where they fit, because the first touch of new memory is slow.
  void Take(const CheckpointParts& parts);

  model::ModelConfig config;
  NamedTensors weights, moments, states;
  const text::Tokenizer* tokenizer = nullptr;
  TrainerState trainer;
  Shard shard;
};

// Writes RUN/checkpoints/step-N: writes and syncs a temporary directory, renames it, then points `latest` to
// it by another rename. An existing step-N is replaced. Throws Error when anything fails; older checkpoints
// stay intact. With `exchange` all ranks call this: each writes its shard, rank 0 the rest, and the checkpoint
// gets its name when all of them are on disk. If one fails, all throw. Rank 0 calls `before` first.
std::filesystem::path SaveCheckpoint(const std::filesystem::path& run, const Snapshot& snapshot,
                                     SaveExchange* exchange = nullptr,
                                     const std::function<void()>& before = {});

// Removes all checkpoints but the newest `keep_last` and those at multiples of `keep_every` (0: none), and
// the temporary directories that interrupted saves have left.
void PruneCheckpoints(const std::filesystem::path& run, int64_t keep_last, int64_t keep_every);

// Reads trainer.json and, with `verify`, checks the checksums of all files. Throws Error when one is missing
// or damaged.
TrainerState ReadTrainerState(const std::filesystem::path& checkpoint, bool verify = true);

// Loads model, optimizer and states from a checkpoint whose TrainerState has been read. Throws Error when
// they do not fit, for instance because the checkpoint has another architecture.
void LoadCheckpoint(const std::filesystem::path& checkpoint, const TrainerState& trainer,
                    nn::LanguageModel& model, AdamW& optimizer, std::vector<nn::States>& states,
                    LowRank* low_rank = nullptr);

// Throws Error unless config.json in `checkpoint` describes `config`; names the first key that differs.
void CheckSameModel(const std::filesystem::path& checkpoint, const model::ModelConfig& config);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_CHECKPOINT_H_
