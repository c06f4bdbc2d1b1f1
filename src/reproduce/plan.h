// Expands an experiment into runs. The id of a run is a hash of everything that determines its result, so
// experiments share runs, and none is computed twice.
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
  int64_t pieces = 0;  // vocabulary of the tokenizer; 0: bytes
  size_t point = 0;    // of the experiment it was planned for

  // The settings as "key=value".
  std::vector<std::string> Assignments() const;
  // The configuration of model and training. For mqar: the two-block model, and steps for the tokens of all
  // epochs.
  model::Config Config() const;
  // The part of the tokens whose logits are computed: 1, or for mqar its queries.
  double PredictedShare() const;
};

// All seeds of one variant at one point.
struct Cell {
  size_t variant = 0, point = 0;
  double rate = 0;
  std::vector<Run> runs;
};

// One learning rate that is tried.
struct TriedRate {
  double rate = 0;
  std::vector<Run> runs;        // one for each seed that tries it
  std::optional<double> value;  // the mean of their figures, once all are done; NaN: one diverged
};

// The search for the learning rate of one group of variants.
struct Tuning {
  std::string group;
  std::vector<TriedRate> tried;
  std::vector<Run> later;      // runs whose rates those of the first seed decide, with 0 in their place
  std::optional<double> best;  // known once all of them are done

  // All runs whose rate is known.
  std::vector<Run> Runs() const;
};

struct Plan {
  std::vector<Tuning> tuning;
  std::vector<Cell> cells;   // the cells whose learning rate is known
  std::vector<Run> waiting;  // runs whose learning rate is not known, with 0 in its place; without duplicates
};

// The figure of a finished run, NaN if it diverged, nothing if it is not done.
using FigureOf = std::function<std::optional<double>(const Run&, const std::string& figure)>;

// The mean of a figure over runs; nothing when one is not done, NaN when one diverged.
std::optional<double> MeanFigure(std::span<const Run> runs, const std::string& name, const FigureOf& figure);

// `corpus` is the fingerprint of the text. `overrides` apply after the scale's settings and before the
// variant's. Throws Error for settings that the tool does not have.
Plan MakePlan(const Experiment& experiment, const std::string& corpus, std::span<const std::string> overrides,
              const FigureOf& figure);

// The runs in the order they are to be done, without duplicates: point by point, first what tunes there, then all
// variants with the first seed, with the second, ...
std::vector<Run> RunsOf(const Plan& plan);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_PLAN_H_
