// The training loop: resume, step, validate, report, save, and recover from loss spikes.
#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "base/stop_signal.h"
#include "dist/group.h"
#include "io/directory_lock.h"
#include "io/file.h"
#include "model/tensors.h"
#include "runs/metrics_log.h"
#include "runs/report.h"
#include "runs/run_directory.h"
#include "train/facts.h"
#include "train/learner.h"
#include "train/progress.h"
#include "train/saving.h"

namespace lattice::train {
namespace {

// Weight of the newest step in the smoothed figures that are printed.
constexpr double kSmoothing = 0.1;

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

int64_t PeakMemory() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

// Resident memory in bytes, without file-backed pages.
int64_t CurrentMemory() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

std::filesystem::path CacheOf(const std::filesystem::path& run) {
  return std::filesystem::absolute(run).parent_path() / ".cache";
}

class Run {
 public:
  explicit Run(const TrainRequest& request)
      : request_(request),
        progress_(request.silent || !root() ? Progress::Mode::kSilent : Progress::Mode::kAuto),
        learner_(
            request.config, CacheOf(request.run), [this](const std::string& note) { progress_.Line(note); },
            request.group, request.objective, request.low_rank),
        saving_(
            request.run, learner_.config().train, [this](const std::string& line) { progress_.Line(line); },
            [this] { return !result_.stopped && stop_.requested(); }, request.group,
            [this] {
              if (metrics_) metrics_->Sync();
            }) {
    if (group() != nullptr) group()->RequireEqual(ResolvedFacts(state()));
    if (root()) lock_.emplace(request.run, "training");
    if (FromRoot(request.checkpoints.empty() ? "" : "resume") == "resume") {
      Resume();
    } else if (!request.init.empty()) {
      learner_.StartFrom(request.init);
    } else {
      learner_.Start();
    }
    if (complete_) return;
    if (root()) metrics_.emplace(request.run / runs::kMetricsFile, learner_.state().step);
    earlier_seconds_ = learner_.state().elapsed;
  }

  TrainResult ToTheEnd() {
    if (complete_) return result_;
    if (root()) io::WriteFileAtomic(request_.run / runs::kConfigToml, model::ToToml(learner_.config()));
    Announce();
    const int64_t steps = learner_.config().train.steps;
    while (learner_.state().step < steps && !Stopping()) {
      Step();
      if (group() != nullptr) group()->SetStep(state().step);
      if (Due(learner_.config().train.eval_every)) Validate();
      learner_.state().elapsed = Elapsed();
      saving_.AfterStep(learner_);
    }
    result_.stopped = learner_.state().step < steps;
    if (!result_.stopped && !validated_) Validate();
    learner_.state().elapsed = Elapsed();
    if (group() != nullptr) group()->WriteTimeline(request_.run);
    saving_.Finish(learner_);
    Conclude();
    return result_;
  }

 private:
  dist::Group* group() const { return request_.group; }
  bool root() const { return group() == nullptr || group()->root(); }
  std::string FromRoot(const std::string& text) const { return group() ? group()->FromRoot(text) : text; }
  // A signal to any rank stops all, behind the same step.
  bool Stopping() const { return group() ? group()->Any(stop_.requested()) : stop_.requested(); }
  const TrainerState& state() const { return learner_.state(); }
  double Elapsed() const { return earlier_seconds_ + watch_.Seconds(); }
  bool Due(int64_t every) const { return every > 0 && state().step % every == 0; }

  void Resume() {
    const auto [checkpoint, saved] = FirstIntact();
    const std::string complete =
        StrCat(checkpoint.string(), " is at step ", saved.step, " of ", learner_.config().train.steps,
               ": the run is complete; raise train.steps to go on");
    complete_ = saved.step >= learner_.config().train.steps;
    Check(!complete_ || request_.complete_is_fine, "[resume] ", complete);
    learner_.Resume(checkpoint);
    if (complete_) {
      result_.step = saved.step;
      result_.tokens = saved.tokens;
      result_.checkpoint = checkpoint;
      progress_.Line(complete);
      return;
    }
    const auto newer = root() ? runs::SetAsideNewer(request_.run, saved.step) : std::vector<std::string>();
    for (const std::string& name : newer) {
      progress_.Line(
          StrCat("note: ", name, " is newer than where the run goes on and is now ", name, ".aside"));
    }
    if (saved.data != state().data)
      progress_.Line("note: the training text is not the one this checkpoint saw");
    if (saved.precision != state().precision) {
      progress_.Line(StrCat("note: precision was ", saved.precision, " and is now ", state().precision));
    }
    // A checkpoint of another run does not count as this run's newest.
    const bool own =
        std::filesystem::equivalent(checkpoint.parent_path(), request_.run / runs::kCheckpoints, ignored_);
    if (own) saving_.SetNewest(checkpoint, saved.step);
  }

  // The first of the request's checkpoints that is intact, as rank 0 finds it.
  std::pair<std::filesystem::path, TrainerState> FirstIntact() {
    if (!root()) {
      const std::filesystem::path checkpoint = FromRoot("");
      return {checkpoint, ReadTrainerState(checkpoint, /*verify=*/false)};
    }
    std::string first_error;
    for (const std::filesystem::path& checkpoint : request_.checkpoints) {
      try {
        std::pair<std::filesystem::path, TrainerState> found = {checkpoint, ReadTrainerState(checkpoint)};
        if (!first_error.empty()) progress_.Line(StrCat("going on from ", checkpoint.string(), " instead"));
        FromRoot(std::filesystem::absolute(checkpoint).string());
        return found;
      } catch (const Error& error) {
        if (first_error.empty()) first_error = error.what();
        progress_.Line(StrCat("note: ", error.what()));
      }
    }
    Fail(first_error, request_.checkpoints.size() > 1 ? "; no older checkpoint of the run is whole" : "");
  }

  void Announce() {
    const model::Config& config = learner_.config();
    const model::ParameterCounts counts = model::CountParameters(config.model);
    result_.parameters = counts.total;
    progress_.Line(StrCat("model       ", config.model.MixerText(), ", ", Grouped(counts.total),
                          " parameters (", Grouped(counts.non_embedding),
                          " without embedding): ", config.model.layers, " layers, width ", config.model.width,
                          ", ", config.model.heads, " heads"));
    result_.held_out = learner_.data().valid ? learner_.data().valid->tokens() : 0;
    progress_.Line(StrCat("data        ", Grouped(learner_.data().train.tokens()), " tokens, held out ",
                          Grouped(result_.held_out), "; vocabulary ", config.model.vocab_size));
    if (result_.held_out == 0) {
      progress_.Line(
          "warning     no text is held out, so nothing will show whether the model only learns by heart; "
          "name one with --valid");
    }
    const double epochs = static_cast<double>(config.train.steps * learner_.layout().rows) /
                          static_cast<double>(learner_.epoch_windows());
    progress_.Line(StrCat("training    ", config.train.steps, " steps of ",
                          Grouped(learner_.tokens_per_step()), " tokens (", learner_.layout().rows, " x ",
                          config.train.seq_len, ", ", config.train.micro_batch, " at once), ",
                          Fixed(epochs, 2), " epochs"));
    progress_.Line(StrCat("machine     ", state().precision, ", ", state().threads, " threads"));
    if (group() != nullptr) {
      progress_.Line(StrCat("ranks       ", group()->size(), ", each with ", learner_.layout().Text(),
                            " of a step and ", Grouped(learner_.MomentBytes()), " bytes of AdamW's moments"));
    }
    progress_.Line(StrCat("run         ", request_.run.string(),
                          state().step > 0 ? StrCat(", from step ", state().step) : ""));
  }

  void Step() {
    const Stopwatch watch;
    const StepResult step = learner_.Step();
    const double seconds = watch.Seconds();
    learner_.state().elapsed = Elapsed();
    result_.step_seconds += seconds;
    validated_ = false;
    if (!step.skipped.empty()) return Skipped(step);
    result_.loss = step.loss;
    const double rate = static_cast<double>(learner_.tokens_per_step()) / seconds;
    const bool first = ++shown_ == 1;
    smooth_loss_ = first ? step.loss : smooth_loss_ + kSmoothing * (step.loss - smooth_loss_);
    smooth_bits_ =
        first ? step.bits_per_byte : smooth_bits_ + kSmoothing * (step.bits_per_byte - smooth_bits_);
    // The first step is slower, because it includes one-time setup.
    smooth_rate_ = shown_ <= 2 ? rate : smooth_rate_ + kSmoothing * (rate - smooth_rate_);
    Report(step, rate);
  }

  void Report(const StepResult& step, double rate) {
    const model::TrainConfig& train = learner_.config().train;
    const bool due = Due(train.log_every) || state().step == 1 || state().step == train.steps;
    const double data_wait = due && group() ? group()->Max(learner_.DataWait()) : learner_.DataWait();
    if (due) {
      nlohmann::ordered_json line = {
          {"step", state().step}, {"loss", step.loss},           {"bits_per_byte", step.bits_per_byte},
          {"lr", step.lr},        {"grad_norm", step.grad_norm}, {"tokens", state().tokens},
          {"tokens_per_s", rate}, {"data_wait", data_wait},      {"memory", CurrentMemory()},
          {"elapsed", Elapsed()}};
      if (request_.objective) {
        for (const auto& [name, layers] : request_.objective->TakeFigures()) line[name] = layers;
      }
      Write(line);
    }
    const double left = static_cast<double>((train.steps - state().step) * learner_.tokens_per_step());
    progress_.Step({.step = state().step,
                    .steps = train.steps,
                    .loss = smooth_loss_,
                    .bits_per_byte = smooth_bits_,
                    .lr = step.lr,
                    .grad_norm = step.grad_norm,
                    .tokens_per_s = smooth_rate_,
                    .eta_s = left / smooth_rate_},
                   due);
  }

  void Write(const nlohmann::ordered_json& line) {
    if (metrics_) metrics_->Write(line);
  }

  void Skipped(const StepResult& step) {
    Write({{"step", state().step},
           {"skipped", step.skipped},
           {"loss", StrCat(step.loss)},
           {"grad_norm", StrCat(step.grad_norm)},
           {"z_score", step.z_score},
           {"elapsed", Elapsed()}});
    progress_.Line(
        StrCat("step ", state().step, " skipped, ", step.skipped, ": loss ", step.loss, ", gradient norm ",
               step.grad_norm,
               step.spike ? StrCat(", ", Fixed(step.z_score, 1), " deviations above the mean") : ""));
    const int64_t most = learner_.config().train.max_skipped;
    Check(step.spike || state().skipped_in_a_row < most, "[train] ", most,
          " steps in a row had a loss or gradient that is not finite, so training stops; the weights are "
          "still finite. "
          "Lower train.lr, raise train.warmup, or set train.precision=fp32, and resume from an earlier "
          "checkpoint in ",
          (request_.run / runs::kCheckpoints).string());
    if (step.spike && learner_.config().train.spike == model::SpikePolicy::kRollback) RollBack();
  }

  // Returns to the newest checkpoint and continues with the data after the spike. Without a checkpoint the
  // step is only skipped.
  void RollBack() {
    saving_.WaitForSave();
    if (saving_.newest().empty()) return;
    const int64_t most = learner_.config().train.max_skipped;
    rollbacks_here_ = saving_.newest_step() == rolled_to_ ? rollbacks_here_ + 1 : 1;
    rolled_to_ = saving_.newest_step();
    Check(rollbacks_here_ <= most, "[train] the loss rose far above its mean ", most, " times after step ",
          rolled_to_,
          ", so training stops; lower train.lr, raise train.spike_z, or set train.spike=skip, and "
          "resume with --resume latest");
    const int64_t from = state().step;
    learner_.RollBack(saving_.newest());
    Write({{"step", state().step}, {"rolled_back_from", from}, {"elapsed", Elapsed()}});
    progress_.Line(StrCat("rolled back from step ", from, " to ", state().step,
                          "; going on with the data behind the spike"));
  }

  void Validate() {
    validated_ = true;
    if (!root() || !learner_.data().valid) return;
    const Evaluation valid = learner_.Validate();
    if (valid.tokens == 0) return;
    result_.valid_loss = valid.Loss();
    result_.valid_bits_per_byte = valid.BitsPerByte();
    result_.valid_perplexity = valid.Perplexity();
    nlohmann::ordered_json line = {{"step", state().step},
                                   {"valid_loss", valid.Loss()},
                                   {"valid_bits_per_byte", valid.BitsPerByte()},
                                   {"valid_perplexity", valid.Perplexity()},
                                   {"valid_tokens", valid.tokens},
                                   {"elapsed", Elapsed()}};
    for (const auto& [name, layers] : learner_.MeasureMemory())
      line[name] = layers.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(layers);
    Write(line);
    DrawReport();
    progress_.Line(StrCat("validation at step ", state().step, ": ", Fixed(valid.BitsPerByte(), 4),
                          " bits/byte, perplexity ", Fixed(valid.Perplexity(), 3)));
  }

  // The report is a by-product: failing to write it must not stop training.
  void DrawReport() const {
    if (!root()) return;
    try {
      runs::WriteReport({request_.run}, request_.run / runs::kReportFile);
    } catch (const Error&) {
    }
  }

  void Conclude() {
    DrawReport();
    result_.step = state().step;
    result_.tokens = state().tokens;
    result_.skipped = state().skipped;
    result_.rollbacks = state().rollbacks;
    result_.checkpoint = saving_.newest();
    result_.data_wait = learner_.DataWait();
    result_.seconds = watch_.Seconds();
    result_.peak_memory_bytes = PeakMemory();
    progress_.Finish();
    if (result_.stopped) {
      progress_.Line(StrCat("stopped at step ", result_.step, "; saved ", result_.checkpoint.string()));
      progress_.Line(StrCat("go on with: ", request_.resume_command));
      return;
    }
    progress_.Line(StrCat("done in ", DurationText(result_.seconds), ", peak memory ",
                          BytesText(result_.peak_memory_bytes),
                          result_.skipped > 0 ? StrCat(", ", result_.skipped, " steps skipped") : "",
                          "; saved ", result_.checkpoint.string()));
  }

  const TrainRequest& request_;
  Progress progress_;
  Learner learner_;
  // Taken by rank 0, after the learner has checked the input: bad input creates no directory.
  std::optional<io::DirectoryLock> lock_;
  TrainResult result_;
  StopSignal stop_;
  std::error_code ignored_;
  std::optional<runs::MetricsLog> metrics_;  // before saving_, whose thread syncs it
  Saving saving_;
  Stopwatch watch_;
  double earlier_seconds_ = 0;
  double smooth_loss_ = 0, smooth_bits_ = 0, smooth_rate_ = 0;
  int64_t shown_ = 0;
  int64_t rolled_to_ = -1, rollbacks_here_ = 0;
  bool validated_ = false;
  bool complete_ = false;  // nothing is left to do
};

}  // namespace

TrainResult Train(const TrainRequest& request) {
  if (request.threads > 0) at::set_num_threads(request.threads);
  if (request.group == nullptr) return Run(request).ToTheEnd();
  std::unique_ptr<Run> run;
  try {
    request.group->RequireEqual(ProgramFacts(request.config));
    run = std::make_unique<Run>(request);
    TrainResult result = run->ToTheEnd();
    request.group->Leave();
    return result;
  } catch (const std::exception& error) {
    // Before the run's threads end, which may wait for other ranks.
    request.group->Explain(error);
    throw;
  }
}

double MeasureStep(const TrainRequest& request, int64_t steps) {
  if (request.threads > 0) at::set_num_threads(request.threads);
  Learner learner(request.config, CacheOf(request.run), {});
  learner.Step();
  learner.Step();
  const Stopwatch watch;
  for (int64_t i = 0; i < steps; ++i) learner.Step();
  return watch.Seconds() / static_cast<double>(steps);
}

}  // namespace lattice::train
