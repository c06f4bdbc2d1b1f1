// The summary of an experiment's runs: medians with their spread, the paper's values beside them, and whether
// the paper's claims hold.
#ifndef LATTICE_REPRODUCE_SUMMARY_H_
#define LATTICE_REPRODUCE_SUMMARY_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reproduce/paired.h"
#include "reproduce/run_store.h"

namespace lattice::reproduce {

// The paper's values, from configs/reproduce/paper.json: experiment -> variant -> point.
class PaperTable {
 public:
  explicit PaperTable(const std::filesystem::path& file);
  std::optional<double> Value(const std::string& experiment, const std::string& variant,
                              const std::string& point) const;

 private:
  nlohmann::json values_;
};

// The median; a diverged run counts as the worst value.
double MedianOf(const Experiment& experiment, std::vector<double> values);

struct Row {
  size_t variant = 0, point = 0;
  double rate = 0;
  std::vector<nlohmann::json> results;  // of the finished seeds
  std::vector<double> values;           // their figures; NaN: diverged
  double median = 0, low = 0, high = 0;
  std::optional<double> paper;
  std::string chosen;  // the variant of the earlier experiment whose settings it has, or empty
};

struct Verdict {
  const Claim* claim = nullptr;
  bool measured = false;
  double better = 0, than = 0;  // medians
  PairedMean difference;        // over the seeds that both have; positive: in favour of the claim
  Finding finding = Finding::kUndecided;
  size_t won = 0;             // seeds in which the claim holds
  std::optional<bool> paper;  // whether it holds in the paper's own values
};

struct TunedRate {
  std::string group;
  std::vector<std::pair<double, std::optional<double>>> figures;  // by rate
  std::optional<double> best;
};

struct Summary {
  const Experiment* experiment = nullptr;
  std::vector<Row> rows;  // with at least one result
  std::vector<TunedRate> tuning;
  std::vector<Verdict> verdicts;
  size_t runs = 0, wanted = 0;  // runs of the rows: done, and in total
  std::string command;          // the command that reproduces everything

  const Variant& VariantOf(const Row& row) const { return experiment->variants[row.variant]; }
  const Point& PointOf(const Row& row) const { return experiment->points[row.point]; }
  const Row* Find(size_t variant, size_t point) const;
  bool HasPaper() const;
};

// `experiment` must outlive the result.
Summary Summarize(const Experiment& experiment, const Plan& plan, const RunStore& store,
                  const PaperTable& paper, const std::string& command);

// Computes the statistics of the rows and the verdicts.
void Conclude(Summary& summary, const PaperTable& paper);

// The summary as JSON, with the settings, commit, processor and command of every run.
nlohmann::ordered_json ToJson(const Summary& summary);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_SUMMARY_H_
