#include "reproduce/selection.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace lattice::reproduce {
namespace {

// The mean figure of a variant over its seeds at the first point; nothing when a run is missing.
std::optional<double> MeanOf(const Experiment& experiment, const Plan& plan, size_t variant,
                             const FigureOf& figure) {
  for (const Cell& cell : plan.cells) {
    if (cell.variant == variant && cell.point == 0)
      return MeanFigure(cell.runs, experiment.points[0].figure, figure);
  }
  return std::nullopt;
}

const Variant* WinnerOf(const Experiment& experiment, const Plan& plan, const std::string& family,
                        const FigureOf& figure) {
  const Variant* winner = nullptr;
  double best = std::nan("");
  for (size_t v = 0; v < experiment.variants.size(); ++v) {
    if (experiment.variants[v].family != family) continue;
    const std::optional<double> mean = MeanOf(experiment, plan, v, figure);
    if (!mean) return nullptr;
    if (winner != nullptr && !experiment.Better(*mean, best)) continue;
    winner = &experiment.variants[v];
    best = *mean;
  }
  return winner;
}

bool HasGroup(const Experiment& experiment, const std::string& group) {
  return std::any_of(experiment.variants.begin(), experiment.variants.end(),
                     [&](const Variant& variant) { return variant.tune == group; });
}

bool HasFamily(const Experiment& experiment, const std::string& family) {
  return std::any_of(experiment.variants.begin(), experiment.variants.end(),
                     [&](const Variant& variant) { return variant.family == family; });
}

}  // namespace

Selection Select(const Experiment& experiment, const Plan& plan, const FigureOf& figure) {
  Selection out;
  for (const Tuning& tuning : plan.tuning) {
    if (tuning.best) out.rates[tuning.group] = *tuning.best;
  }
  std::set<std::string> families;
  for (const Variant& variant : experiment.variants) families.insert(variant.family);
  families.erase("");
  for (const std::string& family : families) {
    if (const Variant* winner = WinnerOf(experiment, plan, family, figure)) out.winners[family] = winner;
  }
  return out;
}

void Apply(const Selection& selection, const Experiment& earlier, Experiment& later) {
  later.known_rates = selection.rates;
  for (Variant& variant : later.variants) {
    Check(variant.tune.empty() || HasGroup(earlier, variant.tune), "[reproduce] ", later.name, ": \"",
          variant.name, "\" has the learning rate of \"", variant.tune, "\", which ", earlier.name,
          " does not tune");
    if (variant.best_of.empty()) continue;
    Check(HasFamily(earlier, variant.best_of), "[reproduce] ", later.name, ": \"", variant.name,
          "\" is the best of \"", variant.best_of, "\", a family that ", earlier.name, " does not have");
    const auto winner = selection.winners.find(variant.best_of);
    if (winner == selection.winners.end()) continue;
    const Variant& best = *winner->second;
    variant.chosen = best.name;
    if (variant.tune.empty()) variant.tune = best.tune;
    variant.set.insert(variant.set.begin(), best.set.begin(), best.set.end());
  }
}

}  // namespace lattice::reproduce
