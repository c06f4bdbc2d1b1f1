// An experiment spelt out as runs. The name of a run is a hash of all that decides its result, so experiments
// share runs, and nothing is ever computed twice.
#ifndef LATTICE_REPRODUCE_PLAN_H_
#define LATTICE_REPRODUCE_PLAN_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "reproduce/experiment.h"

namespace lattice::reproduce {

struct Run {
  std::string id;
  Tool tool = Tool::kTrain;
  std::string config;  // a file of configs/, or empty
  Settings settings;
  double rate = 0;
  int64_t seed = 0;

  // The settings as "key=value".
  std::vector<std::string> Assignments() const;
  // The model and its training. For mqar the two blocks it trains, with the tokens of all epochs.
  model::Config Config() const;
};

// All seeds of one variant at one point.
struct Cell {
  size_t variant = 0, point = 0;
  double rate = 0;
  std::vector<Run> runs;
};

struct Tuning {
  std::string group;
  std::vector<Run> runs;       // one for each rate
  std::optional<double> best;  // known when all of them are done
};

struct Plan {
  std::vector<Tuning> tuning;
  std::vector<Cell> cells;  // those whose learning rate is known
  size_t waiting = 0;       // runs whose learning rate is not
};

// The figure of a run that is done, NaN when it diverged, nothing when it is not done.
using FigureOf = std::function<std::optional<double>(const Run&, const std::string& figure)>;

// `corpus` is the fingerprint of the text, `overrides` come after the scale's settings and before the
// variant's. Throws Error for settings the tool does not take.
Plan MakePlan(const Experiment& experiment, const std::string& corpus, std::span<const std::string> overrides,
              const FigureOf& figure);

// The runs to do in this order, none twice: tuning, then all variants of the first seed, of the second, ...
std::vector<Run> RunsOf(const Plan& plan);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_PLAN_H_
