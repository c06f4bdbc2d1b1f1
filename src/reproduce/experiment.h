// An experiment compares memories (variants) at the points of an axis, each with several seeds, at the
// learning rate that was best in a small grid. It is described by configs/reproduce/<name>.json:
//
//   title, source, note     text; source says where the paper has it
//   tool                    train | tasks (train, then zero-shot tasks) | mqar | decode (train, then generate)
//   corpus                  books | edu: which text of --data
//   metric, higher          the figure of a run that is compared, and whether higher is better
//   x, y                    names of the axes; without x the figure has one row per variant
//   relative_to             name of a variant: the figure shows how the others differ from it, in per cent
//   variants                [{name, set, tune, points, seeds, family, best_of}]: settings, the group whose
//                           learning rate it shares, the labels of the points it has and its seeds (all when
//                           absent), the family in which it competes; best_of: see selected_in
//   selected_in             name of an earlier experiment that decides: every group has the learning rate that
//                           was best there, and a variant with best_of has the settings of the best variant of
//                           that family there, its own on top, and without tune its rate; nothing is tuned here
//   extrapolate             {label, x}: a power law through the points gives the loss at this x, which was not run
//   claims                  [{text, better: [variant, point], than: [variant, point]}]
//   scales                  {laptop: {...}, paper: {...}, miniature: {...}}, each with
//     config, set           a file of configs/ and settings on top of it
//     selected_in           as above, for this scale only
//     rates, seeds          learning rates to try with the first seed (none with selected_in); seeds of the
//                           result
//     tune_seeds, tune_keep seeds that tune a rate, 1 unless told: with more, the tune_keep best rates of the first
//                           seed (2) are run with the others, too, and the best mean wins
//     pieces                vocabulary of a tokenizer trained on the text; 0: bytes
//     points                [{label, x, set, figure, paper, panel, rate_scale}]; figure replaces metric,
//                           paper is the label of the same point at the paper's scale, rate_scale multiplies
//                           the tuned learning rate
//     variants              names, when not all
//     tune_point            label of the point where the rate is tuned; tune_each: at every point separately
//     task_limit            items of each zero-shot task; 0: all
//     jobs, threads         processes at a time and threads of each; 0: one per core, all cores
#ifndef LATTICE_REPRODUCE_EXPERIMENT_H_
#define LATTICE_REPRODUCE_EXPERIMENT_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lattice::reproduce {

// "model.layers" -> "2". For the tool mqar the keys are its options: "pairs" -> "48".
using Settings = std::map<std::string, std::string>;

enum class Tool { kTrain, kTasks, kMqar, kDecode };

struct Point {
  std::string label = {};
  double x = 0;
  std::vector<std::string> set = {};
  std::string figure = {};  // replaces the metric
  std::string paper = {};   // label in the paper's table
  std::string panel = {};
  double rate_scale = 1;

  // "PANEL, LABEL", or the label alone if it starts with the panel.
  std::string Name() const { return label.starts_with(panel) ? label : panel + ", " + label; }
};

struct Variant {
  std::string name = {};
  std::vector<std::string> set = {};
  std::string tune = {};
  std::vector<std::string> points = {};
  std::vector<int64_t> seeds = {};  // empty: the experiment's
  std::string family = {};          // it competes with the others of this name
  std::string best_of = {};         // the family of the earlier experiment whose winner it is
  std::string chosen = {};          // the winner's name, once Apply() has found it

  bool Has(const Point& point) const;
};

struct Place {
  std::string variant, point;
};

struct Claim {
  std::string text;
  Place better, than;
};

struct Experiment {
  std::string name, scale, title, source, note, corpus, metric, x_label, y_label, relative_to, config,
      selected_in;
  Tool tool = Tool::kTrain;
  bool higher = false;
  std::vector<std::string> set;
  std::vector<double> rates;
  std::vector<int64_t> seeds;
  std::vector<Point> points;
  std::vector<Variant> variants;
  std::vector<Claim> claims;
  std::string tune_point;
  bool tune_each = false;
  size_t tune_seeds = 1, tune_keep = 2;
  std::map<std::string, double> known_rates;  // with selected_in: by tuning group
  int64_t pieces = 0;
  int64_t task_limit = 0;
  int jobs = 0, threads = 1;
  std::string beyond_label;  // where a power law is followed to, such as 110M; empty: nowhere
  double beyond_x = 0;
  std::map<std::string, double> paper_x;  // x of the paper's own points, by label

  // The seeds of a variant.
  const std::vector<int64_t>& SeedsOf(const Variant& variant) const {
    return variant.seeds.empty() ? seeds : variant.seeds;
  }
  // Whether `a` is the better figure. NaN is worse than every other figure.
  bool Better(double a, double b) const;
};

// The names of the experiments in `directory`, sorted.
std::vector<std::string> ListExperiments(const std::filesystem::path& directory);

// Throws Error that names the file and the key when something is missing, misspelt or of the wrong type.
Experiment ReadExperiment(const std::filesystem::path& directory, const std::string& name,
                          const std::string& scale);

// Adds "key=value" to `settings`, replacing an earlier value. Throws Error without "=".
void Assign(Settings& settings, const std::string& assignment);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_EXPERIMENT_H_
