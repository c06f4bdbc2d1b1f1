// Reads metrics.jsonl of a run as series, for reports.
#ifndef LATTICE_RUNS_RUN_METRICS_H_
#define LATTICE_RUNS_RUN_METRICS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lattice::runs {

// (step, value) by ascending step, one value per step.
using Series = std::vector<std::pair<double, double>>;

struct RunMetrics {
  std::string name;                                     // of the run's directory
  std::string title;                                    // mixer and size from config.toml; empty without one
  std::map<std::string, Series> series;                 // "loss", "valid_bits_per_byte", ...
  std::map<std::string, std::vector<Series>> layers;    // "novelty", ...: one per layer
  std::vector<std::pair<int64_t, std::string>> events;  // skipped steps and rollbacks

  // The series, or an empty one.
  const Series& Get(const std::string& key) const;
};

// For a repeated step the last line counts; lines that do not parse are ignored. Throws Error when `run` has
// no metrics.jsonl, or it is empty.
RunMetrics ReadRunMetrics(const std::filesystem::path& run);

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_RUN_METRICS_H_
