// Checkpoints of a run: complete on disk under their name, or not there at all.
//
// step-N/ holds config.json, model.safetensors and the tokenizer's files (model/checkpoint.h,
// text/tokenizer.h), and for the trainer: trainer.json (TrainerState, a checksum of every other file, and one
// of itself), optimizer.safetensors, and states.safetensors when states are carried over segments.
#ifndef LATTICE_TRAIN_CHECKPOINT_H_
#define LATTICE_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/config.h"
#include "nn/language_model.h"
#include "text/tokenizer.h"
#include "train/optimizer.h"
#include "train/spikes.h"
#include "train/tensor_file.h"

namespace lattice::train {

// Everything that is not a tensor. The order of the data and the learning rate are functions of the step, and
// random numbers are functions of what they are for: neither has a state.
struct TrainerState {
  int64_t step = 0;     // steps done, skipped ones included
  int64_t updates = 0;  // steps applied
  int64_t tokens = 0;
  int64_t data_offset = 0;  // batches left out by rolling back: step s reads batch s + data_offset
  int64_t skipped = 0;      // not finite, or spikes
  int64_t skipped_in_a_row = 0;
  int64_t rollbacks = 0;
  LossStatistics losses;
  double elapsed = 0;     // seconds of training over all sessions
  std::string precision;  // "fp32" or "bf16"
  int64_t threads = 0;
  std::string data;  // fingerprint of the training tokens
};

// What a checkpoint is made of; `states` has one entry per micro-batch, or none.
struct CheckpointParts {
  const nn::LanguageModel& model;
  const AdamW& optimizer;
  const text::Tokenizer& tokenizer;
  const std::vector<nn::States>& states;
  TrainerState trainer;
};

// The parts at one moment, copied, so that training can go on while they are written. The tokenizer must
// outlive it.
struct Snapshot {
  // Copies into the tensors that are there when they fit: memory that is touched for the first time is slow.
  void Take(const CheckpointParts& parts);

  model::ModelConfig config;
  NamedTensors weights, moments, states;
  const text::Tokenizer* tokenizer = nullptr;
  TrainerState trainer;
};

// Writes RUN/checkpoints/step-N: a temporary directory, synced, then renamed; then `latest` is pointed at it
// by another rename. A step-N that is there is replaced. Throws Error when anything fails; older checkpoints
// stay.
std::filesystem::path SaveCheckpoint(const std::filesystem::path& run, const Snapshot& snapshot);

// Removes all but the newest `keep_last` checkpoints and those at multiples of `keep_every` (0: none), and
// what interrupted savings left behind.
void PruneCheckpoints(const std::filesystem::path& run, int64_t keep_last, int64_t keep_every);

// Reads trainer.json and checks the checksums of all files. Throws Error when one is missing or damaged.
TrainerState ReadTrainerState(const std::filesystem::path& checkpoint);

// Fills model, optimizer and states from a checkpoint whose TrainerState has been read. Throws Error when
// they do not fit, for instance because the checkpoint is of another architecture.
void LoadCheckpoint(const std::filesystem::path& checkpoint, const TrainerState& trainer,
                    nn::LanguageModel& model, AdamW& optimizer, std::vector<nn::States>& states);

// Throws Error unless config.json in `checkpoint` describes `config`; names the first key that differs.
void CheckSameModel(const std::filesystem::path& checkpoint, const model::ModelConfig& config);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_CHECKPOINT_H_
