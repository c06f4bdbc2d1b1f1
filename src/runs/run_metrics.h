// metrics.jsonl of a run, read back as series for reports.
#ifndef LATTICE_RUNS_RUN_METRICS_H_
#define LATTICE_RUNS_RUN_METRICS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lattice::runs {

// (step, value) by ascending step, one value a step.
using Series = std::vector<std::pair<double, double>>;

struct RunMetrics {
  std::string name;                      // of the run's directory
  std::string title;                     // mixer and size, as config.toml says; empty without one
  std::map<std::string, Series> series;  // "loss", "valid_bits_per_byte", ...
  std::map<std::string, std::vector<Series>> layers;    // "novelty", ...: one per layer
  std::vector<std::pair<int64_t, std::string>> events;  // skipped steps and rollbacks

  // The series, or an empty one.
  const Series& Get(const std::string& key) const;
};

// A step that was made twice counts as it was made last; lines that do not parse are left out. Throws Error
// when there is no metrics.jsonl in `run`, or nothing in it.
RunMetrics ReadRunMetrics(const std::filesystem::path& run);

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_RUN_METRICS_H_
