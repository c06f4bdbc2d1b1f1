// Parses metrics.jsonl into series, with rolled-back steps removed.
#include "runs/run_metrics.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "model/config.h"
#include "runs/run_directory.h"

namespace lattice::runs {
namespace {

// The values of one key by step; the last line of a step wins.
using ByStep = std::map<double, double>;

struct Collected {
  std::map<std::string, ByStep> series;
  std::map<std::string, std::vector<ByStep>> layers;
};

void TakeLayers(Collected& all, const std::string& key, double step, const nlohmann::json& values) {
  std::vector<ByStep>& layers = all.layers[key];
  layers.resize(std::max(layers.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_number()) layers[i][step] = values[i].get<double>();
  }
}

// Drops the steps after a rollback's target, which the run repeats.
void DropAfter(Collected& all, double step) {
  for (auto& [key, points] : all.series) points.erase(points.upper_bound(step), points.end());
  for (auto& [key, layers] : all.layers) {
    for (ByStep& points : layers) points.erase(points.upper_bound(step), points.end());
  }
}

void TakeLine(Collected& all, RunMetrics& run, const nlohmann::json& line) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number()) return;
  const double step = line["step"].get<double>();
  const auto at = static_cast<int64_t>(step);
  if (line.contains("rolled_back_from")) {
    DropAfter(all, step);
    run.events.emplace_back(at, StrCat("rolled back from step ", line["rolled_back_from"].dump()));
    return;
  }
  if (line.contains("skipped") && line["skipped"].is_string()) {
    run.events.emplace_back(at, StrCat("skipped: ", line["skipped"].get<std::string>()));
    return;
  }
  for (const auto& [key, value] : line.items()) {
    if (key == "step") continue;
    if (value.is_number()) all.series[key][step] = value.get<double>();
    if (value.is_array()) TakeLayers(all, key, step, value);
  }
}

std::string TitleOf(const std::filesystem::path& run) {
  const std::filesystem::path file = run / kConfigToml;
  if (!std::filesystem::exists(file)) return "";
  try {
    const model::Config config = model::LoadConfig(file);
    return StrCat(config.model.MixerText(), ", ", config.model.layers, " layers, width ", config.model.width);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

const Series& RunMetrics::Get(const std::string& key) const {
  static const Series kNone;
  const auto found = series.find(key);
  return found == series.end() ? kNone : found->second;
}

RunMetrics ReadRunMetrics(const std::filesystem::path& run) {
  const std::filesystem::path path = run / kMetricsFile;
  Check(std::filesystem::is_regular_file(path), "[report] ", run.string(),
        " is no run of training: there is no ", kMetricsFile);
  std::istringstream file(io::ReadFile(path));
  RunMetrics metrics;
  metrics.name = std::filesystem::absolute(run).lexically_normal().filename().string();
  if (metrics.name.empty()) metrics.name = run.string();
  metrics.title = TitleOf(run);
  Collected all;
  std::string text;
  while (std::getline(file, text)) TakeLine(all, metrics, io::ParseJsonLine(text));
  Check(!all.series.empty(), "[report] ", path.string(), " holds no metrics yet");
  for (const auto& [key, points] : all.series) metrics.series[key].assign(points.begin(), points.end());
  for (const auto& [key, layers] : all.layers) {
    for (const ByStep& points : layers) metrics.layers[key].emplace_back(points.begin(), points.end());
  }
  return metrics;
}

}  // namespace lattice::runs
