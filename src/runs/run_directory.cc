// Lists, finds and renames the checkpoints of a run directory.
#include "runs/run_directory.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/error.h"
#include "io/directory.h"
#include "model/checkpoint.h"

namespace lattice::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

// N of "step-N", or -1.
int64_t StepOf(const std::string& name) {
  if (!name.starts_with(kStepPrefix)) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto [stop, failed] = std::from_chars(name.data() + kStepPrefix.size(), end, step);
  return failed == std::errc() && stop == end ? step : -1;
}

bool IsCheckpoint(const fs::path& path) { return fs::is_regular_file(path / model::kConfigFile); }

}  // namespace

std::vector<std::pair<int64_t, fs::path>> ListCheckpoints(const fs::path& run) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(run / kCheckpoints, absent)) {
    const int64_t step = StepOf(entry.path().filename().string());
    if (step >= 0 && !entry.is_symlink() && IsCheckpoint(entry.path()))
      found.emplace_back(step, entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

fs::path FindCheckpoint(const fs::path& path) {
  Check(fs::exists(path), "[checkpoint] there is no file or directory ", path.string());
  if (IsCheckpoint(path)) return path;
  if (IsCheckpoint(path / kCheckpoints / kLatest)) return fs::canonical(path / kCheckpoints / kLatest);
  const auto checkpoints = ListCheckpoints(path);
  Check(
      !checkpoints.empty(), "[checkpoint] ", path.string(),
      " is neither a checkpoint (a directory with config.json and model.safetensors) nor a run that has one");
  return checkpoints.back().second;
}

std::vector<fs::path> ResumeCandidates(const fs::path& path) {
  if (IsCheckpoint(path)) return {path};
  std::vector<fs::path> candidates;
  for (const auto& [step, checkpoint] : ListCheckpoints(path)) candidates.push_back(checkpoint);
  std::reverse(candidates.begin(), candidates.end());
  return candidates;
}

std::vector<std::string> SetAsideNewer(const fs::path& run, int64_t step) {
  std::vector<std::string> names;
  for (const auto& [found, checkpoint] : ListCheckpoints(run)) {
    if (found <= step) continue;
    fs::path aside = checkpoint;
    aside += ".aside";
    io::RemoveTree(aside);
    io::Rename(checkpoint, aside);
    names.push_back(checkpoint.filename().string());
  }
  return names;
}

fs::path NewRun(const fs::path& parent, const std::string& name) {
  for (int number = 1;; ++number) {
    const fs::path run = parent / StrCat(name, "-", number);
    if (!fs::exists(run)) return run;
  }
}

}  // namespace lattice::runs
