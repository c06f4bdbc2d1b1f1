// Estimates the time of an experiment from the floating-point operations of its runs.
#include "reproduce/estimate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "model/cost.h"
#include "model/tensors.h"
#include "reproduce/provenance.h"
#include "text/bytes.h"

namespace lattice::reproduce {
namespace {

model::Config ResolvedConfig(const Run& run) {
  model::Config config = run.Config();
  if (config.model.vocab_size == 0)
    config.model.vocab_size = run.pieces > 0 ? run.pieces : text::BytesTokenizer::kVocabulary;
  return config;
}

size_t Done(const RunStore& store, const std::vector<Run>& runs) {
  return static_cast<size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const Run& run) { return store.IsDone(run); }));
}

Settings WithoutRate(const Run& run) {
  Settings settings = run.settings;
  settings.erase(run.tool == Tool::kMqar ? "lr" : "train.lr");
  return settings;
}

// All runs of the plan. Some of those that wait for a learning rate will turn out to be tuning runs, and are
// counted once.
std::vector<Run> AllRuns(const Plan& plan) {
  std::vector<Run> runs = RunsOf(plan);
  std::set<Settings> tuned;
  for (const Tuning& tuning : plan.tuning) {
    for (const Run& run : tuning.Runs()) tuned.insert(WithoutRate(run));
    for (const Run& run : tuning.later) tuned.insert(WithoutRate(run));
    runs.insert(runs.end(), tuning.later.begin(), tuning.later.end());
  }
  for (const Run& run : plan.waiting) {
    if (!tuned.contains(WithoutRate(run))) runs.push_back(run);
  }
  return runs;
}

std::string TimeText(double seconds) {
  constexpr double kDay = 86400;
  return seconds < 2 * kDay ? DurationText(seconds) : Grouped(static_cast<int64_t>(seconds / kDay)) + " days";
}

std::string RateList(const Experiment& experiment) {
  std::string out;
  if (!experiment.selected_in.empty()) return "of " + experiment.selected_in;
  for (const double rate : experiment.rates) out += (out.empty() ? "" : ", ") + Short(rate, 3);
  return out;
}

std::string VariantLine(const Variant& variant, const Experiment& experiment, const Plan& plan, size_t v,
                        const RunStore& store) {
  size_t wanted = 0, done = 0;
  std::string rate = experiment.selected_in.empty() ? "to be tuned" : "not known yet";
  for (const Cell& cell : plan.cells) {
    if (cell.variant != v) continue;
    wanted += cell.runs.size();
    done += Done(store, cell.runs);
    rate = Short(cell.rate, 3);
  }
  if (wanted == 0) {
    const auto has = [&](const Point& point) { return variant.Has(point); };
    wanted = experiment.SeedsOf(variant).size() *
             static_cast<size_t>(std::count_if(experiment.points.begin(), experiment.points.end(), has));
  }
  return StrCat("  ", variant.name, std::string(variant.name.size() < 26 ? 26 - variant.name.size() : 1, ' '),
                wanted, " runs, ", done, " done, learning rate ", rate, "\n");
}

std::string Parameters(const Plan& plan) {
  int64_t least = 0, most = 0;
  const auto look = [&](const Run& run) {
    const int64_t count = model::CountParameters(ResolvedConfig(run).model).total;
    least = least == 0 ? count : std::min(least, count);
    most = std::max(most, count);
  };
  for (const Cell& cell : plan.cells) look(cell.runs[0]);
  for (const Tuning& tuning : plan.tuning) {
    for (const Run& run : tuning.Runs()) look(run);
  }
  for (const Run& run : plan.waiting) look(run);
  return StrCat(Grouped(least), least == most ? "" : " to " + Grouped(most));
}

}  // namespace

double RunFlops(const Run& run) {
  const model::Config config = ResolvedConfig(run);
  model::Flops flops = model::FlopsPerToken(config.model, config.train.seq_len);
  const auto head = static_cast<double>(2 * config.model.vocab_size * config.model.width);
  flops.weights -= std::llround((1 - run.PredictedShare()) * head);
  return static_cast<double>(flops.Training()) *
         static_cast<double>(config.train.steps * config.train.batch_tokens);
}

std::optional<double> MeasuredRate(const RunStore& store, std::span<const Run> runs) {
  std::vector<double> rates;
  for (const Run& run : runs) {
    if (!store.IsDone(run)) continue;
    const nlohmann::json result = store.Result(run);
    const double seconds = result.at("figures").value("seconds", 0.0);
    if (seconds > 0 && result.at("cpu") == CpuName()) rates.push_back(RunFlops(run) / seconds);
  }
  if (rates.empty()) return std::nullopt;
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

std::string PlanText(const Experiment& experiment, const Plan& plan, const RunStore& store, double rate,
                     int jobs) {
  std::string out = StrCat(experiment.name, ", scale ", experiment.scale, ": ", experiment.title,
                           "\n  seeds ", experiment.seeds.size(), ", learning rates ", RateList(experiment),
                           ", parameters ", Parameters(plan), "\n");
  for (size_t v = 0; v < experiment.variants.size(); ++v)
    out += VariantLine(experiment.variants[v], experiment, plan, v, store);
  double flops = 0;
  size_t missing = 0;
  for (const Run& run : AllRuns(plan)) {
    if (store.IsDone(run)) continue;
    ++missing;
    flops += RunFlops(run);
  }
  const double seconds = flops / rate / std::max(1, jobs);
  return StrCat(out, "  missing: ", missing, " runs, ", Short(flops, 3), " operations, about ",
                TimeText(seconds), " with ", jobs, " at a time (", Short(rate / 1e9, 3),
                " G operations/s each)\n");
}

}  // namespace lattice::reproduce
