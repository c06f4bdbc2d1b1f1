// One optimizer step: micro-batches forward and backward, gradient clipping, the update, and the decision to
// skip it.
#include "train/learner.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "dist/group.h"
#include "model/checkpoint.h"
#include "train/precision.h"
#include "train/saved_states.h"
#include "train/schedule.h"
#include "train/segments.h"
#include "train/trainer.h"

namespace lattice::train {
namespace {

constexpr int64_t kMostSpikesInARow = 5;
// Tokens for measuring the memories: enough for stable means, and cheap compared with a validation.
constexpr int64_t kProbeTokens = 128;

void CheckOptions(const model::Config& config) {
  Check(
      !config.data.reset_state || !config.train.carry_state,
      "[config] data.reset_state starts every document anew and train.carry_state goes on over segments; set "
      "one of them");
  Check(!config.train.carry_state || !config.model.Grows(),
        "[config] train.carry_state needs a recurrent mixer: the transformer's cache would grow without end");
  Check(!config.train.carry_state || !config.train.recompute,
        "[config] train.recompute keeps nothing between segments where train.carry_state goes on; set one of "
        "them");
  Check(!config.train.carry_state || config.model.block == model::BlockKind::kPaper,
        "[config] train.carry_state is for the paper's block only; set model.block = \"paper\"");
}

// The smallest choice of any rank, so that all have the same.
int64_t AgreedMicroBatch(const model::Config& config, const Layout& layout, dist::Group* group) {
  if (group == nullptr) return ChooseMicroBatch(config);
  const int64_t own = ChooseMicroBatch(config, layout.data_ranks, group->size_on_this_host());
  return -static_cast<int64_t>(group->Max(-static_cast<double>(own)));
}

// Rank 0 tokenises the text; the others find it in the cache.
data::PreparedData PrepareData(const model::DataConfig& config, const text::Tokenizer& tokenizer,
                               const std::filesystem::path& cache, const data::Notes& notes,
                               dist::Group* group) {
  if (group != nullptr && !group->root()) group->Await("data is prepared");
  data::PreparedData data = data::Prepare(config, tokenizer, cache, notes);
  if (group != nullptr && group->root()) group->Post("data is prepared", "yes");
  return data;
}

model::Config Resolve(model::Config config, const text::Tokenizer& tokenizer, dist::Group* group) {
  CheckOptions(config);
  const Layout layout(config, group);
  if (config.model.vocab_size == 0) config.model.vocab_size = tokenizer.vocab_size();
  Check(config.model.vocab_size >= tokenizer.vocab_size(), "[config] model.vocab_size is ",
        config.model.vocab_size, " but the tokenizer has ", tokenizer.vocab_size(),
        " ids; set model.vocab_size=0 to take the tokenizer's");
  config.train.precision = ResolvePrecision(config.train.precision);
  if (config.train.micro_batch == 0) config.train.micro_batch = AgreedMicroBatch(config, layout, group);
  return config;
}

data::BatchOptions BatchesOf(const model::Config& config, int64_t rows) {
  return {.rows = rows,
          .seq_len = config.train.seq_len,
          .seed = static_cast<uint64_t>(config.train.seed),
          .shuffle = config.data.shuffle,
          .streams = config.train.carry_state};
}

std::shared_ptr<Objective> Prepared(std::shared_ptr<Objective> objective, const nn::LanguageModel& model) {
  if (objective) objective->Prepare(model);
  return objective;
}

std::unique_ptr<LowRank> MakeLowRank(const nn::LanguageModel& model, int64_t rank, int64_t seed) {
  return rank == 0 ? nullptr : std::make_unique<LowRank>(model, rank, static_cast<uint64_t>(seed));
}

}  // namespace

Learner::Learner(const model::Config& config, const std::filesystem::path& cache, const data::Notes& notes,
                 dist::Group* group, std::shared_ptr<Objective> objective, int64_t rank)
    : group_(group),
      tokenizer_(text::OpenTokenizer(config.data.tokenizer)),
      config_(Resolve(config, *tokenizer_, group)),
      data_(PrepareData(config_.data, *tokenizer_, cache, notes, group)),
      token_bytes_(*tokenizer_),
      layout_(config_, group),
      batches_(data_.train, BatchesOf(config_, layout_.rows)),
      prefetch_(batches_, layout_.first_row, layout_.own_rows),
      model_(config_.model, static_cast<uint64_t>(config_.train.seed)),
      objective_(Prepared(std::move(objective), model_)),
      flat_(group == nullptr ? nullptr : std::make_unique<FlatWeights>(model_, *group)),
      low_rank_(MakeLowRank(model_, rank, config_.train.seed)),
      optimizer_(low_rank_ ? low_rank_->parameters() : model_.parameters(), config_.train,
                 flat_ ? flat_->shares().PiecesOf(group->rank())
                       : WholeParameters(low_rank_ ? low_rank_->parameters() : model_.parameters())),
      buckets_(group == nullptr
                   ? nullptr
                   : std::make_unique<GradientBuckets>(model_, *group, layout_.sequence_ranks > 1)),
      pieces_(layout_.sequence_ranks == 1
                  ? nullptr
                  : std::make_unique<SequencePieces>(model_, *group, layout_, config_.train.recompute)) {
  Check(group == nullptr || !objective_,
        "[dist] only the next token is learned by several ranks; train with one");
  Check(group == nullptr || !low_rank_,
        "[dist] several ranks learn whole matrices only; train with one, or without --rank");
  model_.SetBf16(config_.train.precision == model::Precision::kBf16);
  state_.precision = config_.train.precision == model::Precision::kBf16 ? "bf16" : "fp32";
  state_.threads = at::get_num_threads();
  state_.data = data_.train.fingerprint();
  Check(!config_.data.reset_state || tokenizer_->special().eot >= 0,
        "[config] data.reset_state needs a tokenizer with an end-of-text id; set data.reset_state=false");
}

void Learner::Start() {
  if (objective_) objective_->Start(model_);
  if (low_rank_) low_rank_->Begin();
}

void Learner::StartFrom(const std::filesystem::path& checkpoint) {
  for (const std::string_view file : {model::kConfigFile, model::kWeightsFile})
    model::VerifyChecksum(checkpoint / file);
  CheckSameModel(checkpoint, model_.config());
  model_.LoadWeights(checkpoint / model::kWeightsFile);
  if (low_rank_) low_rank_->Begin();
}

void Learner::Resume(const std::filesystem::path& checkpoint) {
  const TrainerState saved = ReadTrainerState(checkpoint, group_ == nullptr || group_->root());
  LoadCheckpoint(checkpoint, saved, model_, optimizer_, states_, low_rank_.get());
  states_ = SplitStates(states_, layout_.rows, layout_.first_row, layout_.own_rows, MicroRows());
  const TrainerState own = state_;
  state_ = saved;
  state_.precision = own.precision;
  state_.threads = own.threads;
  state_.data = own.data;
}

void Learner::RollBack(const std::filesystem::path& checkpoint) {
  const int64_t next_batch = state_.step + state_.data_offset;
  const int64_t rollbacks = state_.rollbacks + 1;
  const double elapsed = state_.elapsed;
  Resume(checkpoint);
  state_.data_offset = next_batch - state_.step;
  state_.rollbacks = rollbacks;
  state_.elapsed = elapsed;
}

Shard Learner::OwnShard() const {
  if (group_ == nullptr) return {};
  const auto first = group_->rank() * static_cast<int64_t>(states_.size());
  return {.rank = group_->rank(), .ranks = group_->size(), .first_micro = first};
}

double Learner::Backward(const at::Tensor& inputs, const at::Tensor& targets, double share,
                         nn::States* states, bool last) {
  if (objective_) return objective_->Backward(model_, inputs, targets, share);
  const at::Tensor loss = [&] {
    const dist::Span span(timeline(), "forward");
    return model_.Loss(model_.Forward(inputs, states, config_.train.recompute), targets) * share;
  }();
  if (last && buckets_) buckets_->Arm();
  const dist::Span span(timeline(), "backward");
  loss.backward();
  return loss.item<double>();
}

double Learner::Documents(std::span<const int64_t> ids, bool last) {
  const int64_t length = config_.train.seq_len;
  const auto most = static_cast<int64_t>(ids.size());
  double loss = 0;
  const auto groups = GroupSegments(DocumentSegments(ids, length, tokenizer_->special().eot), most);
  for (const auto& group : groups) {
    const auto rows = static_cast<int64_t>(group.size());
    at::Tensor inputs = at::zeros({rows, group.front().length}, at::kLong);
    at::Tensor targets = at::full({rows, group.front().length}, -1, at::kLong);
    int64_t counted = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const Segment& segment = group[static_cast<size_t>(i)];
      const int64_t* from = ids.data() + segment.row * (length + 1) + segment.begin;
      const int64_t at = i * group.front().length;
      std::copy(from, from + segment.length, inputs.mutable_data_ptr<int64_t>() + at);
      std::copy(from + 1, from + 1 + segment.length, targets.mutable_data_ptr<int64_t>() + at);
      counted += segment.length;
    }
    const double share = static_cast<double>(counted) / static_cast<double>(tokens_per_step());
    loss += Backward(inputs, targets, share, nullptr, last && &group == &groups.back());
  }
  return loss;
}

PieceTokens Learner::Tokens(std::span<const int64_t> ids, int64_t piece) {
  const int64_t length = config_.train.seq_len, part = layout_.piece;
  const int64_t count = static_cast<int64_t>(ids.size()) / (length + 1);
  PieceTokens tokens = {at::empty({count, part}, at::kLong), at::empty({count, part}, at::kLong)};
  for (int64_t row = 0; row < count; ++row) {
    const int64_t* from = ids.data() + row * (length + 1) + piece * part;
    std::copy(from, from + part, tokens.inputs.mutable_data_ptr<int64_t>() + row * part);
    std::copy(from + 1, from + 1 + part, tokens.targets.mutable_data_ptr<int64_t>() + row * part);
    for (int64_t i = 0; i < part; ++i) step_bytes_ += token_bytes_.After(from[i], from[i + 1]);
  }
  tokens.share = static_cast<double>(count * part) / static_cast<double>(tokens_per_step());
  return tokens;
}

double Learner::MicroBatch(int64_t index, std::span<const int64_t> ids, bool last) {
  const PieceTokens tokens = Tokens(ids, 0);
  if (config_.data.reset_state) return Documents(ids, last);
  nn::States* states = nullptr;
  if (config_.train.carry_state) states = &states_[static_cast<size_t>(index)];
  return Backward(tokens.inputs, tokens.targets, tokens.share, states, last);
}

int64_t Learner::MicroRows() const { return std::min(config_.train.micro_batch, layout_.own_rows); }

double Learner::AllMicroBatches(std::span<const int64_t> tokens) {
  const int64_t micro = MicroRows(), micros = (layout_.own_rows + micro - 1) / micro;
  const auto width = static_cast<size_t>(config_.train.seq_len) + 1;
  const auto rows = [&](int64_t index) {
    const int64_t first = index * micro, count = std::min(micro, layout_.own_rows - first);
    return tokens.subspan(static_cast<size_t>(first) * width, static_cast<size_t>(count) * width);
  };
  states_.resize(config_.train.carry_state ? static_cast<size_t>(micros) : 0);
  if (pieces_) {
    return pieces_->Step(
        micros, [&](int64_t index, int64_t piece) { return Tokens(rows(index), piece); },
        [&] { buckets_->Arm(); });
  }
  double loss = 0;
  for (int64_t index = 0; index < micros; ++index)
    loss += MicroBatch(index, rows(index), index + 1 == micros);
  return loss;
}

void Learner::DecideSkip(StepResult& result) const {
  if (!std::isfinite(result.loss)) {
    result.skipped = "loss is not finite";
  } else if (!std::isfinite(result.grad_norm)) {
    result.skipped = "gradient is not finite";
  } else if (config_.train.spike != model::SpikePolicy::kOff) {
    result.z_score = state_.losses.ZScore(result.loss);
    result.spike = result.z_score > config_.train.spike_z;
    // A loss that stays high is not a spike: after kMostSpikesInARow it is accepted as the new level.
    if (result.spike && config_.train.spike == model::SpikePolicy::kSkip) {
      result.spike = state_.skipped_in_a_row < kMostSpikesInARow;
    }
    if (result.spike) result.skipped = "loss spike";
  }
}

void Learner::SumOverRanks(StepResult& result) {
  if (group_ == nullptr) return;
  {
    const dist::Span span(timeline(), "wait for sums");
    buckets_->Finish();
  }
  const std::vector<double> sums = group_->Sum({result.loss, static_cast<double>(step_bytes_)});
  result.loss = sums[0];
  step_bytes_ = static_cast<int64_t>(sums[1]);
}

void Learner::Update(const StepResult& result) {
  {
    const dist::Span span(timeline(), "update");
    optimizer_.Step(result.lr, result.grad_norm);
    if (low_rank_) low_rank_->Apply();
  }
  if (!flat_) return;
  const dist::Span span(timeline(), "gather weights");
  flat_->Gather();
}

dist::Timeline* Learner::timeline() const { return group_ == nullptr ? nullptr : group_->timeline(); }

StepResult Learner::Step() {
  const int64_t batch = state_.step + state_.data_offset;
  if (config_.train.carry_state && batches_.StartsAnew(batch)) states_.clear();
  StepResult result;
  step_bytes_ = 0;
  result.loss = AllMicroBatches(prefetch_.Take(batch));
  SumOverRanks(result);
  if (low_rank_) low_rank_->TakeGradients();
  if (!objective_)
    result.bits_per_byte = BitsPerByte(result.loss * static_cast<double>(tokens_per_step()), step_bytes_);
  result.lr = LearningRate(config_.train, state_.step);
  result.grad_norm = optimizer_.GradientNorm();
  DecideSkip(result);
  if (result.skipped.empty()) {
    Update(result);
    state_.skipped_in_a_row = 0;
    state_.losses.Observe(result.loss);
  } else {
    // Carried states may contain NaN as well, which must not reach the next segment.
    if (!result.spike) states_.clear();
    ++state_.skipped;
    ++state_.skipped_in_a_row;
  }
  optimizer_.ZeroGradients();
  ++state_.step;
  state_.updates = optimizer_.updates();
  state_.tokens += tokens_per_step();
  return result;
}

Evaluation Learner::Validate() const {
  return Evaluate(
      model_, *data_.valid, token_bytes_,
      {.seq_len = config_.train.seq_len,
       .max_tokens = config_.train.eval_tokens,
       .piece = layout_.piece,
       .batch_tokens = std::max(config_.train.seq_len, config_.train.micro_batch * config_.train.seq_len)});
}

MemoryFigures Learner::MeasureMemory() const {
  const int64_t length = std::min({kProbeTokens, config_.train.seq_len, data_.valid->tokens()});
  at::Tensor tokens = at::empty({1, length}, at::kLong);
  data_.valid->Read(0, {tokens.mutable_data_ptr<int64_t>(), static_cast<size_t>(length)});
  return train::MeasureMemory(model_, tokens);
}

}  // namespace lattice::train
