// Training a language model: from a configuration to checkpoints in a run directory. This header needs no
// torch.
#ifndef LATTICE_TRAIN_TRAINER_H_
#define LATTICE_TRAIN_TRAINER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "model/config.h"

namespace lattice::train {

struct TrainRequest {
  model::Config config;              // validated; model.vocab_size 0 takes the tokenizer's
  std::filesystem::path run;         // created when it is not there
  std::filesystem::path checkpoint;  // go on from this one; empty: from the start
  std::string resume_command;        // printed when a signal ends the run early
  int threads = 0;                   // 0: as torch chooses
  bool silent = false;               // print nothing
};

struct TrainResult {
  int64_t step = 0;      // steps done
  bool stopped = false;  // by a signal, before the last step
  double loss = 0;       // of the last step, nats a token
  int64_t parameters = 0;
  int64_t tokens = 0;
  int64_t skipped = 0;
  double seconds = 0;       // this session
  double step_seconds = 0;  // of it, in steps: without validation and saving
  double valid_loss = 0;    // the last validation; 0 when nothing is held out
  double valid_bits_per_byte = 0;
  double valid_perplexity = 0;
  int64_t peak_memory_bytes = 0;
  std::filesystem::path checkpoint;  // the newest
};

// Trains to the last step or to the first SIGINT or SIGTERM, and saves. A run that goes on from a checkpoint
// has the same losses and weights, bit for bit, as one that was never interrupted, with the same
// configuration.
//
// A step whose loss or gradient is not finite is not applied, only counted; ten in a row end the run with an
// Error. A checkpoint that cannot be written is reported and tried again at the next; only the last one must
// succeed. Throws Error also when the data is too short, or the checkpoint is damaged or of another
// architecture.
TrainResult Train(const TrainRequest& request);

// Seconds that a step of this configuration takes here, after two steps of warming up: for choosing a number
// of steps. Writes only to the token cache of `run`.
double MeasureStep(const TrainRequest& request, int64_t steps);

// Sequences per forward pass for train.micro_batch = 0: at most 8192 tokens, a divisor of the sequences of a
// step, and activations within half of the memory that is free now.
int64_t ChooseMicroBatch(const model::Config& config);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_TRAINER_H_
