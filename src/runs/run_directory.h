// Where the files of a run are, without torch.
//
//   RUN/config.toml                the run's configuration, with what was resolved at its start
//   RUN/metrics.jsonl              runs/metrics_log.h
//   RUN/checkpoints/step-N/        config.json, model.safetensors, tokenizer; trainer.json,
//   optimizer.safetensors RUN/checkpoints/latest         symbolic link to the newest of them
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

// The checkpoint that `path` means: itself when it is one (it holds config.json), else the newest of the run.
// Throws Error that says what was looked for.
std::filesystem::path FindCheckpoint(const std::filesystem::path& path);

// Where to resume from when `path` is named, the best first: only itself when it is a checkpoint, else those
// of the run, newest first. Empty when there is none.
std::vector<std::filesystem::path> ResumeCandidates(const std::filesystem::path& path);

// Gives checkpoints after `step` the ending .aside: a run that goes on from an older one makes them again,
// and they must not be mistaken for its own. Returns their names.
std::vector<std::string> SetAsideNewer(const std::filesystem::path& run, int64_t step);

// PARENT/NAME-N with the smallest N that is not taken.
std::filesystem::path NewRun(const std::filesystem::path& parent, const std::string& name);

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_RUN_DIRECTORY_H_
