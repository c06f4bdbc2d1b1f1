#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/file.h"
#include "model/tensors.h"
#include "train/format.h"
#include "train/metrics.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/session.h"
#include "train/stop_signal.h"

namespace lattice::train {
namespace {

constexpr int64_t kMostSkippedInARow = 10;
// Weight of the newest step in the smoothed figures on the screen.
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

std::filesystem::path CacheOf(const std::filesystem::path& run) {
  return std::filesystem::absolute(run).parent_path() / ".cache";
}

class Run {
 public:
  explicit Run(const TrainRequest& request)
      : request_(request),
        progress_(request.silent ? Progress::Mode::kSilent : Progress::Mode::kAuto),
        session_(request.config, CacheOf(request.run),
                 [this](const std::string& note) { progress_.Line(note); }),
        lock_(request.run) {
    if (!request.checkpoint.empty()) Resume();
    metrics_.emplace(request.run / kMetricsFile, session_.state().step);
    earlier_seconds_ = session_.state().elapsed;
  }

  TrainResult ToTheEnd() {
    io::WriteFileAtomic(request_.run / kConfigToml, model::ToToml(session_.config()));
    Announce();
    const StopSignal stop;
    const int64_t steps = session_.config().train.steps;
    while (session_.state().step < steps && !stop.requested()) {
      Step();
      if (Due(session_.config().train.eval_every)) Validate();
      if (session_.state().step < steps && Due(session_.config().train.save_every)) SaveOrSayWhyNot();
    }
    result_.stopped = session_.state().step < steps;
    if (!result_.stopped && !validated_) Validate();
    if (result_.checkpoint.empty() || saved_step_ != session_.state().step) Save();
    Conclude();
    return result_;
  }

 private:
  const TrainerState& state() const { return session_.state(); }
  double Elapsed() const { return earlier_seconds_ + watch_.Seconds(); }
  bool Due(int64_t every) const { return every > 0 && state().step % every == 0; }

  void Resume() {
    const TrainerState saved = ReadTrainerState(request_.checkpoint);
    Check(saved.step < session_.config().train.steps, "[resume] ", request_.checkpoint.string(),
          " is at step ", saved.step, " of ", session_.config().train.steps,
          ": the run is complete; raise train.steps to go on");
    session_.Resume(request_.checkpoint);
    if (saved.data != state().data)
      progress_.Line("note: the training text is not the one this checkpoint saw");
    if (saved.precision != state().precision) {
      progress_.Line(StrCat("note: precision was ", saved.precision, " and is now ", state().precision));
    }
    result_.checkpoint = request_.checkpoint;
    saved_step_ = state().step;
  }

  void Announce() {
    const model::Config& config = session_.config();
    const model::ParameterCounts counts = model::CountParameters(config.model);
    result_.parameters = counts.total;
    progress_.Line(StrCat("model       ", config.model.mixer, ", ", Grouped(counts.total), " parameters (",
                          Grouped(counts.non_embedding), " without embedding): ", config.model.layers,
                          " layers, width ", config.model.width, ", ", config.model.heads, " heads"));
    const auto& valid = session_.data().valid;
    progress_.Line(StrCat("data        ", Grouped(session_.data().train.tokens()), " tokens, held out ",
                          valid ? Grouped(valid->tokens()) : "0", "; vocabulary ", config.model.vocab_size));
    const double epochs = static_cast<double>(config.train.steps * session_.rows()) /
                          static_cast<double>(session_.epoch_windows());
    progress_.Line(StrCat("training    ", config.train.steps, " steps of ",
                          Grouped(session_.tokens_per_step()), " tokens (", session_.rows(), " x ",
                          config.train.seq_len, ", ", config.train.micro_batch, " at once), ",
                          Fixed(epochs, 2), " epochs"));
    progress_.Line(StrCat("machine     ", state().precision, ", ", state().threads, " threads"));
    progress_.Line(StrCat("run         ", request_.run.string(),
                          state().step > 0 ? StrCat(", from step ", state().step) : ""));
  }

  void Step() {
    const Stopwatch watch;
    const StepResult step = session_.Step();
    const double seconds = watch.Seconds();
    session_.state().elapsed = Elapsed();
    result_.step_seconds += seconds;
    validated_ = false;
    if (!step.applied) return Skipped(step);
    result_.loss = step.loss;
    const double rate = static_cast<double>(session_.tokens_per_step()) / seconds;
    const bool first = ++shown_ == 1;
    smooth_loss_ = first ? step.loss : smooth_loss_ + kSmoothing * (step.loss - smooth_loss_);
    smooth_bits_ =
        first ? step.bits_per_byte : smooth_bits_ + kSmoothing * (step.bits_per_byte - smooth_bits_);
    // The first step also pays for what is set up once.
    smooth_rate_ = shown_ <= 2 ? rate : smooth_rate_ + kSmoothing * (rate - smooth_rate_);
    Report(step, rate);
  }

  void Report(const StepResult& step, double rate) {
    const model::TrainConfig& train = session_.config().train;
    const bool due = Due(train.log_every) || state().step == 1 || state().step == train.steps;
    if (due) {
      metrics_->Write({{"step", state().step},
                       {"loss", step.loss},
                       {"bits_per_byte", step.bits_per_byte},
                       {"lr", step.lr},
                       {"grad_norm", step.grad_norm},
                       {"tokens", state().tokens},
                       {"tokens_per_s", rate},
                       {"elapsed", Elapsed()}});
    }
    const double left = static_cast<double>((train.steps - state().step) * session_.tokens_per_step());
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

  void Skipped(const StepResult& step) {
    metrics_->Write({{"step", state().step},
                     {"skipped", std::isfinite(step.loss) ? "gradient is not finite" : "loss is not finite"},
                     {"loss", StrCat(step.loss)},
                     {"grad_norm", StrCat(step.grad_norm)},
                     {"elapsed", Elapsed()}});
    progress_.Line(
        StrCat("step ", state().step, " skipped: loss ", step.loss, ", gradient norm ", step.grad_norm));
    Check(state().skipped_in_a_row < kMostSkippedInARow, "[train] ", kMostSkippedInARow,
          " steps in a row had a loss or gradient that is not finite, so training stops; the weights are "
          "still finite. "
          "Lower train.lr, raise train.warmup, or set train.precision=fp32, and resume from an earlier "
          "checkpoint in ",
          (request_.run / kCheckpoints).string());
  }

  void Validate() {
    validated_ = true;
    if (!session_.data().valid) return;
    const Evaluation valid = session_.Validate();
    if (valid.tokens == 0) return;
    result_.valid_loss = valid.Loss();
    result_.valid_bits_per_byte = valid.BitsPerByte();
    result_.valid_perplexity = valid.Perplexity();
    metrics_->Write({{"step", state().step},
                     {"valid_loss", valid.Loss()},
                     {"valid_bits_per_byte", valid.BitsPerByte()},
                     {"valid_perplexity", valid.Perplexity()},
                     {"valid_tokens", valid.tokens},
                     {"elapsed", Elapsed()}});
    progress_.Line(StrCat("validation at step ", state().step, ": ", Fixed(valid.BitsPerByte(), 4),
                          " bits/byte, perplexity ", Fixed(valid.Perplexity(), 3)));
  }

  void Save() {
    session_.state().elapsed = Elapsed();
    result_.checkpoint = session_.Save(request_.run);
    saved_step_ = state().step;
  }

  void SaveOrSayWhyNot() {
    try {
      Save();
    } catch (const Error& error) {
      progress_.Line(StrCat("no checkpoint at step ", state().step, ", training goes on: ", error.what()));
    }
  }

  void Conclude() {
    result_.step = state().step;
    result_.tokens = state().tokens;
    result_.skipped = state().skipped;
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
  Session session_;
  RunLock lock_;  // after the session: bad input leaves no directory behind
  std::optional<MetricsLog> metrics_;
  Stopwatch watch_;
  double earlier_seconds_ = 0;
  double smooth_loss_ = 0, smooth_bits_ = 0, smooth_rate_ = 0;
  int64_t shown_ = 0;
  int64_t saved_step_ = -1;
  bool validated_ = false;
  TrainResult result_;
};

}  // namespace

TrainResult Train(const TrainRequest& request) {
  if (request.threads > 0) at::set_num_threads(request.threads);
  return Run(request).ToTheEnd();
}

double MeasureStep(const TrainRequest& request, int64_t steps) {
  if (request.threads > 0) at::set_num_threads(request.threads);
  Session session(request.config, CacheOf(request.run), {});
  session.Step();
  session.Step();
  const Stopwatch watch;
  for (int64_t i = 0; i < steps; ++i) session.Step();
  return watch.Seconds() / static_cast<double>(steps);
}

}  // namespace lattice::train
