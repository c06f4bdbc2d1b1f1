// Medians, spreads and verdicts over the results of an experiment.
#include "reproduce/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "io/json.h"

namespace lattice::reproduce {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

void FillStatistics(const Experiment& experiment, Row& row) {
  row.median = MedianOf(experiment, row.values);
  row.low = row.high = std::nan("");
  for (const double value : row.values) {
    if (!std::isfinite(value)) continue;
    row.low = std::isfinite(row.low) ? std::min(row.low, value) : value;
    row.high = std::isfinite(row.high) ? std::max(row.high, value) : value;
  }
}

const Row* RowAt(const Summary& summary, const Place& place) {
  for (const Row& row : summary.rows) {
    if (summary.VariantOf(row).name == place.variant && summary.PointOf(row).label == place.point)
      return &row;
  }
  return nullptr;
}

// How much better the one is than the other, seed by seed. Where only one of the two diverged, the difference is
// infinite.
std::vector<double> DifferencesOf(const Experiment& experiment, const Row& better, const Row& than) {
  std::vector<double> out;
  for (size_t i = 0; i < better.results.size(); ++i) {
    for (size_t j = 0; j < than.results.size(); ++j) {
      if (better.results[i].at("seed") != than.results[j].at("seed")) continue;
      const double a = better.values[i], b = than.values[j];
      if (std::isfinite(a) && std::isfinite(b)) {
        out.push_back(experiment.higher ? a - b : b - a);
      } else if (std::isfinite(a) || std::isfinite(b)) {
        out.push_back(std::isfinite(a) ? HUGE_VAL : -HUGE_VAL);
      }
    }
  }
  return out;
}

// An infinite difference counts as the largest that was seen, so that one run that diverged does not decide.
void Bound(std::vector<double>& differences) {
  double largest = 0;
  for (const double difference : differences) {
    if (std::isfinite(difference)) largest = std::max(largest, std::abs(difference));
  }
  if (largest == 0) largest = 1;
  for (double& difference : differences) difference = std::clamp(difference, -largest, largest);
}

void Compare(const Experiment& experiment, const Row& better, const Row& than, Verdict& out) {
  std::vector<double> differences = DifferencesOf(experiment, better, than);
  out.won = static_cast<size_t>(std::count_if(differences.begin(), differences.end(),
                                              [](double difference) { return difference > 0; }));
  Bound(differences);
  out.difference = MeanOfDifferences(differences);
  out.finding = FindingOf(out.difference);
}

Verdict VerdictOf(const Summary& summary, const Claim& claim, const PaperTable& paper) {
  const Experiment& experiment = *summary.experiment;
  Verdict out;
  out.claim = &claim;
  const auto a = paper.Value(experiment.name, claim.better.variant, claim.better.point);
  const auto b = paper.Value(experiment.name, claim.than.variant, claim.than.point);
  if (a && b) out.paper = experiment.Better(*a, *b);
  const Row* better = RowAt(summary, claim.better);
  const Row* than = RowAt(summary, claim.than);
  if (better == nullptr || than == nullptr) return out;
  out.measured = true;
  out.better = better->median;
  out.than = than->median;
  Compare(experiment, *better, *than, out);
  return out;
}

TunedRate Tuned(const Tuning& tuning) {
  TunedRate out{tuning.group, {}, tuning.best};
  for (const TriedRate& tried : tuning.tried) out.figures.emplace_back(tried.runs[0].rate, tried.value);
  return out;
}

// JSON has no NaN, so the value of a diverged run is null.
ordered_json Number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json RunJson(const json& result, double value) {
  return {{"id", result.at("id")},           {"seed", result.at("seed")},      {"value", Number(value)},
          {"figures", result.at("figures")}, {"commit", result.at("commit")},  {"cpu", result.at("cpu")},
          {"threads", result.at("threads")}, {"command", result.at("command")}};
}

ordered_json RowJson(const Summary& summary, const Row& row) {
  const Point& point = summary.PointOf(row);
  const json& first = row.results[0];
  ordered_json out = {{"variant", summary.VariantOf(row).name},
                      {"point", point.label},
                      {"x", point.x},
                      {"figure", point.figure},
                      {"median", Number(row.median)},
                      {"low", Number(row.low)},
                      {"high", Number(row.high)},
                      {"paper", row.paper ? ordered_json(*row.paper) : ordered_json()},
                      {"rate", row.rate},
                      {"parameters", first.at("parameters")},
                      {"non_embedding", first.at("non_embedding")},
                      {"tokens", first.at("tokens")},
                      {"corpus", first.at("corpus")},
                      {"runs", ordered_json::array()}};
  if (!row.chosen.empty()) out["chosen"] = row.chosen;
  for (size_t i = 0; i < row.results.size(); ++i)
    out["runs"].push_back(RunJson(row.results[i], row.values[i]));
  return out;
}

ordered_json VerdictJson(const Verdict& verdict) {
  ordered_json out = {{"text", verdict.claim->text}};
  if (verdict.measured) {
    out["finding"] = Name(verdict.finding);
    out["medians"] = {Number(verdict.better), Number(verdict.than)};
    out["difference"] = {{"mean", verdict.difference.mean},
                         {"low", verdict.difference.low},
                         {"high", verdict.difference.high}};
    out["seeds_won"] = verdict.won;
    out["seeds"] = verdict.difference.pairs;
  }
  if (verdict.paper) out["paper"] = *verdict.paper;
  return out;
}

}  // namespace

double MedianOf(const Experiment& experiment, std::vector<double> values) {
  std::sort(values.begin(), values.end(), [&](double a, double b) { return experiment.Better(a, b); });
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

PaperTable::PaperTable(const std::filesystem::path& file) : values_(io::ReadJson(file)) {}

std::optional<double> PaperTable::Value(const std::string& experiment, const std::string& variant,
                                        const std::string& point) const {
  const json* at = &values_;
  for (const std::string& key : {experiment, variant, point}) {
    const auto found = at->find(key);
    if (found == at->end()) return std::nullopt;
    at = &*found;
  }
  return at->get<double>();
}

const Row* Summary::Find(size_t variant, size_t point) const {
  for (const Row& row : rows) {
    if (row.variant == variant && row.point == point) return &row;
  }
  return nullptr;
}

bool Summary::HasPaper() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.paper.has_value(); });
}

Summary Summarize(const Experiment& experiment, const Plan& plan, const RunStore& store,
                  const PaperTable& paper, const std::string& command) {
  Summary out;
  out.experiment = &experiment;
  out.command = command;
  out.wanted = plan.waiting.size();
  for (const Tuning& tuning : plan.tuning) out.tuning.push_back(Tuned(tuning));
  std::set<std::string> seen;  // points may share runs
  for (const Cell& cell : plan.cells) {
    const Point& point = experiment.points[cell.point];
    Row row;
    row.variant = cell.variant, row.point = cell.point, row.rate = cell.rate;
    row.paper = paper.Value(experiment.name, experiment.variants[cell.variant].name, point.paper);
    row.chosen = experiment.variants[cell.variant].chosen;
    for (const Run& run : cell.runs) {
      const bool first = seen.insert(run.id).second;
      out.wanted += first ? 1 : 0;
      if (!store.IsDone(run)) continue;
      out.runs += first ? 1 : 0;
      row.results.push_back(store.Result(run));
      row.values.push_back(*store.Figure(run, point.figure));
    }
    if (row.results.empty()) continue;
    out.rows.push_back(std::move(row));
  }
  Conclude(out, paper);
  return out;
}

void Conclude(Summary& summary, const PaperTable& paper) {
  for (Row& row : summary.rows) FillStatistics(*summary.experiment, row);
  for (const Claim& claim : summary.experiment->claims)
    summary.verdicts.push_back(VerdictOf(summary, claim, paper));
}

ordered_json ToJson(const Summary& summary) {
  const Experiment& experiment = *summary.experiment;
  ordered_json out = {{"experiment", experiment.name}, {"title", experiment.title},
                      {"scale", experiment.scale},     {"source", experiment.source},
                      {"metric", experiment.metric},   {"better", experiment.higher ? "higher" : "lower"},
                      {"command", summary.command},    {"runs", summary.runs},
                      {"wanted", summary.wanted},      {"rows", ordered_json::array()}};
  for (const Row& row : summary.rows) out["rows"].push_back(RowJson(summary, row));
  for (const TunedRate& tuned : summary.tuning) {
    ordered_json rates = ordered_json::array();
    for (const auto& [rate, value] : tuned.figures)
      rates.push_back({{"rate", rate}, {"value", value ? Number(*value) : ordered_json()}});
    out["tuning"].push_back({{"group", tuned.group},
                             {"best", tuned.best ? ordered_json(*tuned.best) : ordered_json()},
                             {"rates", rates}});
  }
  out["claims"] = ordered_json::array();
  for (const Verdict& verdict : summary.verdicts) out["claims"].push_back(VerdictJson(verdict));
  return out;
}

}  // namespace lattice::reproduce
