// Trains a language model from a configuration, and writes checkpoints into a run directory. This header
// needs no torch.
#ifndef LATTICE_TRAIN_TRAINER_H_
#define LATTICE_TRAIN_TRAINER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace lattice::dist {
class Group;
}

namespace lattice::train {

class Objective;

struct TrainRequest {
  model::Config config;       // validated; model.vocab_size 0: the tokenizer's size
  std::filesystem::path run;  // created if it does not exist
  // Resume from the first of these that is intact; empty: start from scratch.
  std::vector<std::filesystem::path> checkpoints;
  // A new run starts from the weights of this checkpoint, of a model with the same configuration; empty: from
  // random ones.
  std::filesystem::path init;
  // If true, resuming a run that has done all its steps is no error: Train() says so and does nothing.
  bool complete_is_fine = false;
  std::string resume_command;    // printed when a signal ends the run early
  int threads = 0;               // 0: torch's default
  dist::Group* group = nullptr;  // the processes that train together; null: this one alone
  bool silent = false;           // print nothing
  // What to learn (train/objective.h); null: to predict the next token. Its losses are no cross-entropies, so bits per
  // byte of steps are not computed; those of validations are.
  std::shared_ptr<Objective> objective;
  int64_t low_rank =
      0;  // projections learn as W0 + B A with factors of this rank (train/low_rank.h); 0: as a whole
};

struct TrainResult {
  int64_t step = 0;      // steps done
  bool stopped = false;  // by a signal, before the last step
  double loss = 0;       // of the last step, nats per token
  int64_t parameters = 0;
  int64_t tokens = 0;
  int64_t skipped = 0;
  int64_t rollbacks = 0;
  double data_wait = 0;     // seconds that steps waited for tokens
  double seconds = 0;       // duration of this session
  double step_seconds = 0;  // of it, spent in steps, without validation and saving
  int64_t held_out = 0;     // tokens for validation
  double valid_loss = 0;    // the last validation; 0 when nothing is held out
  double valid_bits_per_byte = 0;
  double valid_perplexity = 0;
  int64_t peak_memory_bytes = 0;
  std::filesystem::path checkpoint;  // the newest
};

// Trains to the last step or to the first SIGINT or SIGTERM, and saves. With the same configuration, a
// resumed run has the same losses and weights, bit for bit, as one that was never interrupted.
//
// A step whose loss or gradient is not finite is not applied, only counted; train.max_skipped of them in a
// row end the run with an Error. On a loss spike the step is skipped, or the run is rolled back to its newest
// checkpoint and skips the data in between (train.spike). Checkpoints are written in the background; a save
// that fails is reported and retried, and only the last one must succeed. A damaged checkpoint is reported
// and the next of request.checkpoints is used. Also throws Error when the data is too short, or all
// checkpoints are damaged or of another architecture.
//
// With a group, all its processes call this with the same request and a run directory that they share. Each
// computes its part of every step; rank 0 alone prints, validates and writes metrics. A signal to one of them
// stops all.
TrainResult Train(const TrainRequest& request);

// Measures the seconds per step of this configuration on this machine, after two warm-up steps. Used to
// choose a number of steps. Writes only to the token cache of `run`.
double MeasureStep(const TrainRequest& request, int64_t steps);

// The micro-batch size, in sequences, for train.micro_batch = 0: at most 8192 tokens, a divisor of the
// sequences of a step, and saved activations within half of the free memory. A step is divided among `ranks` (groups of
// ranks, where those of one share sequences: train.sequence_ranks), and `on_this_host` processes share the memory.
int64_t ChooseMicroBatch(const model::Config& config, int64_t ranks = 1, int64_t on_this_host = 1);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_TRAINER_H_
