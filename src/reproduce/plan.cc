#include "reproduce/plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "io/hash.h"

namespace lattice::reproduce {
namespace {

// 0.006 and 6e-3 are the same setting.
std::string RateText(double rate) { return nlohmann::json(rate).dump(); }

class Planner {
 public:
  Planner(const Experiment& experiment, const std::string& corpus, std::span<const std::string> overrides,
          const FigureOf& figure)
      : experiment_(experiment), corpus_(corpus), overrides_(overrides), figure_(figure) {}

  Plan Make() {
    Plan plan;
    for (const Variant& variant : experiment_.variants) {
      if (Find(plan, variant.tune) == nullptr) plan.tuning.push_back(Tune(variant));
    }
    for (size_t v = 0; v < experiment_.variants.size(); ++v) AddCells(v, plan);
    return plan;
  }

 private:
  static const Tuning* Find(const Plan& plan, const std::string& group) {
    for (const Tuning& tuning : plan.tuning) {
      if (tuning.group == group) return &tuning;
    }
    return nullptr;
  }

  Tuning Tune(const Variant& variant) const {
    Tuning out{variant.tune, {}, {}};
    if (experiment_.rates.size() == 1) {
      out.best = experiment_.rates[0];
      return out;
    }
    const Point& point = TunePoint(variant);
    double best = std::nan("");
    bool complete = true;
    for (const double rate : experiment_.rates) {
      out.runs.push_back(MakeRun(variant, point, rate, experiment_.seeds[0]));
      const std::optional<double> value = figure_(out.runs.back(), point.figure);
      complete = complete && value.has_value();
      if (!complete || (out.best && !experiment_.Better(*value, best))) continue;
      out.best = rate;
      best = *value;
    }
    if (!complete) out.best.reset();
    return out;
  }

  const Point& TunePoint(const Variant& variant) const {
    const Point* first = nullptr;
    for (const Point& point : experiment_.points) {
      if (!variant.Has(point)) continue;
      if (point.label == experiment_.tune_point) return point;
      if (first == nullptr) first = &point;
    }
    Check(first != nullptr, "[reproduce] ", experiment_.name, ": ", variant.name, " has no point at scale ",
          experiment_.scale);
    return *first;
  }

  void AddCells(size_t v, Plan& plan) const {
    const Variant& variant = experiment_.variants[v];
    const std::optional<double> rate = Find(plan, variant.tune)->best;
    for (size_t p = 0; p < experiment_.points.size(); ++p) {
      if (!variant.Has(experiment_.points[p])) continue;
      if (!rate) {
        plan.waiting += experiment_.seeds.size();
        continue;
      }
      Cell cell{v, p, *rate, {}};
      for (const int64_t seed : experiment_.seeds)
        cell.runs.push_back(MakeRun(variant, experiment_.points[p], *rate, seed));
      plan.cells.push_back(std::move(cell));
    }
  }

  Run MakeRun(const Variant& variant, const Point& point, double rate, int64_t seed) const {
    Run run;
    run.tool = experiment_.tool;
    run.config = experiment_.config;
    run.rate = rate;
    run.seed = seed;
    for (const std::string& text : experiment_.set) Assign(run.settings, text);
    for (const std::string& text : overrides_) Assign(run.settings, text);
    for (const std::string& text : variant.set) Assign(run.settings, text);
    for (const std::string& text : point.set) Assign(run.settings, text);
    const std::string prefix = run.tool == Tool::kMqar ? "" : "train.";
    run.settings[prefix + "lr"] = RateText(rate);
    run.settings[prefix + "seed"] = StrCat(seed);
    const nlohmann::json all = {{"tool", static_cast<int>(run.tool)},
                                {"config", run.config},
                                {"corpus", run.tool == Tool::kMqar ? "" : corpus_},
                                {"settings", run.settings}};
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
  out.train.seq_len = Number(settings, "length", 1024);
  out.train.batch_tokens = Number(settings, "batch", 96) * out.train.seq_len;
  out.train.steps = Number(settings, "epochs", 64) * Number(settings, "examples", 100000) /
                    std::max<int64_t>(1, Number(settings, "batch", 96));
  return out;
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
  for (const Tuning& tuning : plan.tuning) {
    for (const Run& run : tuning.runs) add(run);
  }
  size_t seeds = 0;
  for (const Cell& cell : plan.cells) seeds = std::max(seeds, cell.runs.size());
  for (size_t s = 0; s < seeds; ++s) {
    for (const Cell& cell : plan.cells) {
      if (s < cell.runs.size()) add(cell.runs[s]);
    }
  }
  return out;
}

}  // namespace lattice::reproduce
