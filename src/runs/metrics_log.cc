// Appends metrics as JSON lines, and mirrors the numbers to TensorBoard event files.
#include "runs/metrics_log.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"

namespace lattice::runs {
namespace {

bool BelongsTo(const std::string& line, int64_t last_step) {
  const nlohmann::json value = io::ParseJsonLine(line);
  return value.is_object() && value.contains("step") && value["step"].is_number_integer() &&
         value["step"].get<int64_t>() <= last_step;
}

std::string KeptLines(const std::filesystem::path& path, int64_t last_step) {
  std::string kept, line;
  if (!std::filesystem::exists(path)) return kept;
  std::istringstream lines(io::ReadFile(path));
  while (std::getline(lines, line)) {
    if (BelongsTo(line, last_step)) kept += line + "\n";
  }
  return kept;
}

// The scalars of a line with their TensorBoard tags: valid_loss becomes valid/loss, a list becomes
// memory/novelty/layer_1 and so on.
std::vector<std::pair<std::string, double>> Scalars(const nlohmann::ordered_json& line) {
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [key, value] : line.items()) {
    if (key == "step") continue;
    const bool valid = key.starts_with("valid_");
    if (value.is_number()) {
      scalars.emplace_back(valid ? "valid/" + key.substr(6) : "train/" + key, value.get<double>());
    }
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
      scalars.emplace_back(StrCat("memory/", key, "/layer_", i + 1), value[i].get<double>());
    }
  }
  return scalars;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path, int64_t last_step) {
  io::WriteFileAtomic(path, KeptLines(path, last_step));
  file_.emplace(path);
  events_.emplace(path.parent_path() / "tensorboard", last_step);
}

void MetricsLog::Write(const nlohmann::ordered_json& line) {
  file_->Append(line.dump() + "\n");
  const auto step = line["step"].get<int64_t>();
  if (line.contains("rolled_back_from")) return events_->Restart(step);
  const std::vector<std::pair<std::string, double>> scalars = Scalars(line);
  if (!scalars.empty()) events_->Write(step, scalars);
}

}  // namespace lattice::runs
