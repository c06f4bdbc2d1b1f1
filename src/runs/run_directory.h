// The layout of a run directory. Needs no torch.
//
//   RUN/config.toml            the run's configuration, with everything resolved that was left open
//   RUN/metrics.jsonl          runs/metrics_log.h
//   RUN/report.html            runs/report.h
//   RUN/checkpoints/step-N/    the model: config.json, model.safetensors and the tokenizer; for resuming:
//                              trainer.json, optimizer.safetensors
//   RUN/checkpoints/latest     symbolic link to the newest of them
#ifndef LATTICE_RUNS_RUN_DIRECTORY_H_
#define LATTICE_RUNS_RUN_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lattice::runs {

inline constexpr std::string_view kConfigToml = "config.toml";
inline constexpr std::string_view kMetricsFile = "metrics.jsonl";
inline constexpr std::string_view kCheckpoints = "checkpoints";
inline constexpr std::string_view kLatest = "latest";

// The complete checkpoints of a run as (step, directory), oldest first.
std::vector<std::pair<int64_t, std::filesystem::path>> ListCheckpoints(const std::filesystem::path& run);

// The checkpoint at `path`: itself if it is a checkpoint (it holds config.json), else the newest of the run.
// Throws Error that says what was tried.
std::filesystem::path FindCheckpoint(const std::filesystem::path& path);

// The checkpoints to resume from, the best first: only `path` itself if it is a checkpoint, else those of the
// run, newest first. Empty when there is none.
std::vector<std::filesystem::path> ResumeCandidates(const std::filesystem::path& path);

// Appends .aside to the names of checkpoints after `step`: a run that resumes from an older one writes these
// steps again, and the old ones must not be mistaken for its own. Returns their names.
std::vector<std::string> SetAsideNewer(const std::filesystem::path& run, int64_t step);

// PARENT/NAME-N with the smallest N that is not taken.
std::filesystem::path NewRun(const std::filesystem::path& parent, const std::string& name);

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_RUN_DIRECTORY_H_
