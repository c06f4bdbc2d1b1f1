// The parts of one training session and its step; trainer.cc decides when to do what.
#ifndef LATTICE_TRAIN_SESSION_H_
#define LATTICE_TRAIN_SESSION_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/prepare.h"
#include "model/config.h"
#include "nn/language_model.h"
#include "text/tokenizer.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/optimizer.h"

namespace lattice::train {

struct StepResult {
  double loss = 0;  // nats a token
  double bits_per_byte = 0;
  double grad_norm = 0;
  double lr = 0;
  bool applied = false;
};

class Session {
 public:
  // Opens tokenizer and data, fills in what the configuration left open (vocabulary, micro-batch, precision),
  // and makes the model. `notes` hears what a person should know. Throws Error.
  Session(const model::Config& config, const std::filesystem::path& cache, const data::Notes& notes);

  const model::Config& config() const { return config_; }
  const data::PreparedData& data() const { return data_; }
  const TrainerState& state() const { return state_; }
  TrainerState& state() { return state_; }
  int64_t tokens_per_step() const { return rows_ * config_.train.seq_len; }
  int64_t epoch_windows() const { return batches_.epoch_windows(); }
  int64_t rows() const { return rows_; }

  // Takes everything from a checkpoint.
  void Resume(const std::filesystem::path& checkpoint);

  // One step: forward and backward of all micro-batches, clipping, update. Not applied when loss or gradient
  // is not finite.
  StepResult Step();

  // On the held-out text, which must exist.
  Evaluation Validate() const;

  std::filesystem::path Save(const std::filesystem::path& run) const;

 private:
  double MicroBatch(int64_t index, int64_t first, int64_t count);

  std::unique_ptr<text::Tokenizer> tokenizer_;
  model::Config config_;
  data::PreparedData data_;
  std::vector<int64_t> bytes_per_token_;
  int64_t rows_;
  data::Batches batches_;
  nn::LanguageModel model_;
  AdamW optimizer_;
  std::vector<nn::States> states_;  // per micro-batch, when states are carried
  TrainerState state_;
  int64_t step_bytes_ = 0;  // text that the targets of the current step stand for
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SESSION_H_
