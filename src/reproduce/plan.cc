// Turns an experiment into runs: first those that tune the learning rate, then all variants, points and
// seeds.
#include "reproduce/plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "io/hash.h"

namespace lattice::reproduce {
namespace {

// A canonical text, because 0.006 and 6e-3 are the same setting.
std::string RateText(double rate) { return nlohmann::json(rate).dump(); }

class Planner {
 public:
  Planner(const Experiment& experiment, const std::string& corpus, std::span<const std::string> overrides,
          const FigureOf& figure)
      : experiment_(experiment), corpus_(corpus), overrides_(overrides), figure_(figure) {}

  Plan Make() {
    Plan plan;
    for (size_t v = 0; v < experiment_.variants.size(); ++v) {
      const Variant& variant = experiment_.variants[v];
      for (size_t p = 0; p < experiment_.points.size(); ++p) {
        if (!variant.Has(experiment_.points[p])) continue;
        AddCell(v, p, Rate(plan, variant, experiment_.points[p]), plan);
      }
    }
    return plan;
  }

 private:
  // The learning rate of the variant's group at this point; plans the tuning of a new group.
  std::optional<double> Rate(Plan& plan, const Variant& variant, const Point& point) const {
    if (!experiment_.selected_in.empty()) return KnownRate(variant);
    const std::string group = experiment_.tune_each ? StrCat(variant.tune, ", ", point.Name()) : variant.tune;
    for (const Tuning& tuning : plan.tuning) {
      if (tuning.group == group) return tuning.best;
    }
    plan.tuning.push_back(Tune(group, variant, experiment_.tune_each ? point : TunePoint(variant)));
    return plan.tuning.back().best;
  }

  // The rate that the earlier experiment found; nothing when it has not decided yet.
  std::optional<double> KnownRate(const Variant& variant) const {
    if (!variant.best_of.empty() && variant.chosen.empty()) return std::nullopt;
    const auto found = experiment_.known_rates.find(variant.tune);
    return found == experiment_.known_rates.end() ? std::nullopt : std::optional(found->second);
  }

  // With one seed the best rate wins; with more, those that it puts first are tried with the others, too.
  Tuning Tune(const std::string& group, const Variant& variant, const Point& point) const {
    Tuning out;
    out.group = group;
    if (experiment_.rates.size() == 1) {
      out.best = experiment_.rates[0];
      return out;
    }
    const std::vector<int64_t>& seeds = experiment_.SeedsOf(variant);
    for (const double rate : experiment_.rates) {
      out.tried.push_back({rate, {MakeRun(variant, point, rate, seeds[0])}, {}});
      out.tried.back().value = MeanFigure(out.tried.back().runs, point.figure, figure_);
    }
    std::vector<TriedRate*> left;
    for (TriedRate& tried : out.tried) left.push_back(&tried);
    const auto decided = [](const TriedRate* tried) { return tried->value.has_value(); };
    const auto better = [&](const TriedRate* a, const TriedRate* b) {
      return experiment_.Better(*a->value, *b->value);
    };
    const bool screened = std::all_of(left.begin(), left.end(), decided);
    if (experiment_.tune_seeds > 1) {
      if (screened) std::stable_sort(left.begin(), left.end(), better);
      left.resize(std::min(left.size(), experiment_.tune_keep));
      for (TriedRate* tried : left) {
        for (size_t s = 1; s < experiment_.tune_seeds; ++s)
          (screened ? tried->runs : out.later)
              .push_back(MakeRun(variant, point, screened ? tried->rate : 0, seeds[s]));
        tried->value = MeanFigure(tried->runs, point.figure, figure_);
      }
    }
    if (!screened || !std::all_of(left.begin(), left.end(), decided)) return out;
    out.best = (*std::min_element(left.begin(), left.end(), better))->rate;
    return out;
  }

  const Point& TunePoint(const Variant& variant) const {
    const Point* first = nullptr;
    for (const Point& point : experiment_.points) {
      if (!variant.Has(point)) continue;
      if (point.label == experiment_.tune_point) return point;
      if (first == nullptr) first = &point;
    }
    return *first;
  }

  void AddCell(size_t v, size_t p, std::optional<double> rate, Plan& plan) const {
    Cell cell{v, p, rate.value_or(0) * experiment_.points[p].rate_scale, {}};
    const Variant& variant = experiment_.variants[v];
    for (const int64_t seed : experiment_.SeedsOf(variant))
      cell.runs.push_back(MakeRun(variant, experiment_.points[p], rate.value_or(0), seed));
    if (rate) {
      plan.cells.push_back(std::move(cell));
      return;
    }
    for (const Run& run : cell.runs) {
      const auto same = [&](const Run& other) { return other.id == run.id; };
      if (std::none_of(plan.waiting.begin(), plan.waiting.end(), same)) plan.waiting.push_back(run);
    }
  }

  Run MakeRun(const Variant& variant, const Point& point, double rate, int64_t seed) const {
    Run run;
    run.tool = experiment_.tool;
    run.config = experiment_.config;
    run.rate = rate * point.rate_scale;
    run.seed = seed;
    run.pieces = experiment_.pieces;
    run.point = static_cast<size_t>(&point - experiment_.points.data());
    for (const std::string& text : experiment_.set) Assign(run.settings, text);
    for (const std::string& text : overrides_) Assign(run.settings, text);
    for (const std::string& text : variant.set) Assign(run.settings, text);
    for (const std::string& text : point.set) Assign(run.settings, text);
    const std::string prefix = run.tool == Tool::kMqar ? "" : "train.";
    run.settings[prefix + "lr"] = RateText(run.rate);
    run.settings[prefix + "seed"] = StrCat(seed);
    nlohmann::json all = {{"tool", static_cast<int>(run.tool)},
                          {"config", run.config},
                          {"corpus", run.tool == Tool::kMqar ? "" : corpus_},
                          {"settings", run.settings}};
    if (run.pieces > 0) all["pieces"] = run.pieces;
    if (run.tool == Tool::kTasks) all["task_limit"] = experiment_.task_limit;
    run.id = io::Sha256Hex(all.dump()).substr(0, 12);
    return run;
  }

  const Experiment& experiment_;
  const std::string& corpus_;
  std::span<const std::string> overrides_;
  const FigureOf& figure_;
};

int64_t Number(const Settings& settings, const std::string& key, int64_t fallback) {
  const auto found = settings.find(key);
  return found == settings.end() ? fallback : std::stoll(found->second);
}

}  // namespace

std::vector<Run> Tuning::Runs() const {
  std::vector<Run> out;
  for (const TriedRate& one : tried) out.insert(out.end(), one.runs.begin(), one.runs.end());
  return out;
}

std::optional<double> MeanFigure(std::span<const Run> runs, const std::string& name, const FigureOf& figure) {
  double sum = 0;
  for (const Run& run : runs) {
    const std::optional<double> value = figure(run, name);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(runs.size());
}

std::vector<std::string> Run::Assignments() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : settings) out.push_back(key + "=" + value);
  return out;
}

model::Config Run::Config() const {
  if (tool != Tool::kMqar) return model::LoadConfig(config, Assignments());
  model::Config out;
  const auto mixer = settings.find("mixers");
  if (mixer != settings.end()) out.model.mixer = mixer->second;
  out.model.layers = 2;
  out.model.heads = 1;
  out.model.width = Number(settings, "d", 64);
  out.model.vocab_size = Number(settings, "vocab", 8192);
  for (const auto& [key, value] : settings) {
    if (key.starts_with("model.")) model::Override(out, StrCat(key, "=", value));
  }
  out.train.seq_len = Number(settings, "length", 1024);
  out.train.batch_tokens = Number(settings, "batch", 96) * out.train.seq_len;
  out.train.steps = Number(settings, "epochs", 64) * Number(settings, "examples", 100000) /
                    std::max<int64_t>(1, Number(settings, "batch", 96));
  return out;
}

double Run::PredictedShare() const {
  if (tool != Tool::kMqar) return 1;
  return static_cast<double>(Number(settings, "pairs", 1)) /
         static_cast<double>(Number(settings, "length", 1024));
}

Plan MakePlan(const Experiment& experiment, const std::string& corpus, std::span<const std::string> overrides,
              const FigureOf& figure) {
  return Planner(experiment, corpus, overrides, figure).Make();
}

std::vector<Run> RunsOf(const Plan& plan) {
  std::vector<Run> out;
  std::set<std::string> seen;
  const auto add = [&](const Run& run) {
    if (seen.insert(run.id).second) out.push_back(run);
  };
  size_t points = 0, seeds = 0;
  for (const Tuning& tuning : plan.tuning) {
    for (const Run& run : tuning.Runs()) points = std::max(points, run.point + 1);
  }
  for (const Cell& cell : plan.cells) {
    points = std::max(points, cell.point + 1);
    seeds = std::max(seeds, cell.runs.size());
  }
  for (size_t p = 0; p < points; ++p) {
    for (const Tuning& tuning : plan.tuning) {
      for (const Run& run : tuning.Runs()) {
        if (run.point == p) add(run);
      }
    }
    for (size_t s = 0; s < seeds; ++s) {
      for (const Cell& cell : plan.cells) {
        if (cell.point == p && s < cell.runs.size()) add(cell.runs[s]);
      }
    }
  }
  return out;
}

}  // namespace lattice::reproduce
