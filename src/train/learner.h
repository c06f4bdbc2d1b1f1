// Model, data and optimizer, and one training step over them. The training loop is in trainer.cc.
#ifndef LATTICE_TRAIN_LEARNER_H_
#define LATTICE_TRAIN_LEARNER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/prefetch.h"
#include "data/prepare.h"
#include "data/token_bytes.h"
#include "model/config.h"
#include "nn/language_model.h"
#include "text/tokenizer.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/flat_weights.h"
#include "train/gradient_buckets.h"
#include "train/layout.h"
#include "train/low_rank.h"
#include "train/memory_figures.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/sequence_pieces.h"

namespace lattice::train {

struct StepResult {
  double loss = 0;  // nats per token
  double bits_per_byte = 0;
  double grad_norm = 0;
  double lr = 0;
  double z_score = 0;   // of the loss, relative to the recent losses
  std::string skipped;  // why the step was not applied; empty: it was applied
  bool spike = false;   // it was skipped because of a loss spike
};

class Learner {
 public:
  // Opens tokenizer and data, resolves what the configuration leaves open (vocabulary, micro-batch,
  // precision), and makes the model. `notes` is called with messages for the user. With a group, which must
  // outlive the object, every step is divided among its ranks; only one process alone takes an objective, or a rank for
  // low-rank updates. Throws Error.
  Learner(const model::Config& config, const std::filesystem::path& cache, const data::Notes& notes,
          dist::Group* group = nullptr, std::shared_ptr<Objective> objective = nullptr, int64_t rank = 0);

  const model::Config& config() const { return config_; }
  const data::PreparedData& data() const { return data_; }
  const TrainerState& state() const { return state_; }
  TrainerState& state() { return state_; }
  int64_t tokens_per_step() const { return layout_.rows * config_.train.seq_len; }
  int64_t epoch_windows() const { return batches_.epoch_windows(); }
  const Layout& layout() const { return layout_; }

  // Lets the objective, if there is one, set the weights that a new run starts from.
  void Start();

  // Takes the weights of a checkpoint, which need not be one of training.
  void StartFrom(const std::filesystem::path& checkpoint);

  // Continues from a checkpoint: loads weights, optimizer, states and counters.
  void Resume(const std::filesystem::path& checkpoint);

  // Like Resume(), but skips the data that the steps after the checkpoint have seen.
  void RollBack(const std::filesystem::path& checkpoint);

  // One step: forward and backward of all micro-batches, clipping, update. The update is not applied when
  // loss or gradient is not finite, or the loss is a spike and train.spike is not off.
  StepResult Step();

  // Evaluates on the held-out text, which must exist.
  Evaluation Validate() const;

  // Measures the memories on the beginning of the held-out text, which must exist.
  MemoryFigures MeasureMemory() const;

  // The parts of a checkpoint of the current state.
  CheckpointParts Parts() const {
    return {model_, optimizer_, *tokenizer_, states_, state_, OwnShard(), low_rank_.get()};
  }

  // Bytes of the moments that this rank holds, and the seconds that its steps have waited for sums over ranks.
  int64_t MomentBytes() const { return optimizer_.MomentBytes(); }
  double CommunicationWait() const {
    return (buckets_ ? buckets_->waited() : 0) + (pieces_ ? pieces_->waited() : 0);
  }

  // Seconds that steps have spent waiting for data.
  double DataWait() const { return prefetch_.waited(); }

  nn::LanguageModel& model() { return model_; }

 private:
  // Rows of a micro-batch; the last of a step may have fewer.
  int64_t MicroRows() const;
  // Inputs and targets of one piece (the only one, unless ranks share sequences) of rows as Batches::Read writes them;
  // counts the bytes of the targets.
  PieceTokens Tokens(std::span<const int64_t> ids, int64_t piece);
  // Forward and backward of a step's micro-batches. Returns this rank's part of the loss.
  double AllMicroBatches(std::span<const int64_t> tokens);
  // Forward and backward of one micro-batch. Returns its loss, weighted by its fraction of the step's tokens.
  // Ranks exchange gradients in the last backward pass of a step.
  double MicroBatch(int64_t index, std::span<const int64_t> tokens, bool last);
  // The same with every document starting from the initial state.
  double Documents(std::span<const int64_t> tokens, bool last);
  double Backward(const at::Tensor& inputs, const at::Tensor& targets, double share, nn::States* states,
                  bool last);
  // Adds up what the ranks have computed of a step.
  void SumOverRanks(StepResult& result);
  Shard OwnShard() const;
  void Update(const StepResult& result);
  dist::Timeline* timeline() const;
  // Sets result.skipped when the update must not be applied.
  void DecideSkip(StepResult& result) const;

  dist::Group* group_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  model::Config config_;
  data::PreparedData data_;
  data::TokenBytes token_bytes_;
  const Layout layout_;
  data::Batches batches_;
  data::Prefetch prefetch_;
  nn::LanguageModel model_;
  std::shared_ptr<Objective> objective_;
  std::unique_ptr<FlatWeights> flat_;  // with a group; before the optimizer, which refers to the parameters
  std::unique_ptr<LowRank> low_rank_;  // with a rank; before the optimizer for the same reason
  AdamW optimizer_;
  std::unique_ptr<GradientBuckets> buckets_;  // with a group
  std::unique_ptr<SequencePieces> pieces_;    // when ranks share sequences
  std::vector<nn::States> states_;            // per micro-batch, when states are carried
  TrainerState state_;
  int64_t step_bytes_ = 0;  // bytes of text of the current step's targets
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_LEARNER_H_
