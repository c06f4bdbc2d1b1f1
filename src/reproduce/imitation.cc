// Runs the imitations of single layers, and collects their errors.
#include "reproduce/imitation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/directory.h"
#include "io/json.h"
#include "model/checkpoint.h"
#include "runs/run_directory.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kStage = "imitate";

fs::path RunOf(const DistillOptions& options, const ImitationPlan::Memory& memory, int64_t seed) {
  return options.out / StrCat(memory.mixer, "-", seed);
}

int64_t CountLayers(const fs::path& teacher) {
  return model::ReadModelConfig(runs::FindCheckpoint(teacher)).layers;
}

// The layers that the teacher has, ascending.
std::vector<int64_t> Layers(const ImitationPlan& plan, const fs::path& teacher) {
  const int64_t count = CountLayers(teacher);
  std::vector<int64_t> layers;
  for (const int64_t layer : plan.layers) layers.push_back(std::min(layer, count - 1));
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

// model.mixers of a student that has the memory in these layers, and attention elsewhere.
std::string Mixers(const std::string& mixer, const std::vector<int64_t>& layers, int64_t count) {
  std::string out = "model.mixers=";
  for (int64_t i = 0; i < count; ++i) {
    const bool converted = std::find(layers.begin(), layers.end(), i) != layers.end();
    out += StrCat(i == 0 ? "" : ",", converted ? mixer + "+window" : "transformer");
  }
  return out;
}

Command RunCommandOf(const ImitationPlan& plan, const DistillOptions& options,
                     const ImitationPlan::Memory& memory, int64_t seed) {
  std::vector<std::string> settings = plan.settings;
  settings.push_back(Mixers(memory.mixer, Layers(plan, options.teacher), CountLayers(options.teacher)));
  settings.push_back(StrCat("train.seed=", seed));
  return DistillCommand(options, plan.text, plan.student, RunOf(options, memory, seed), kStage, settings);
}

// [tokens, error of every layer] of a run, line by line of its log.
ordered_json ReadCurve(const fs::path& run, const std::vector<int64_t>& layers) {
  ordered_json curve = ordered_json::array();
  for (const json& row : MetricsOf(run, kStage)) {
    if (!row.contains("layer_errors")) continue;
    ordered_json point = ordered_json::array({row.at("tokens").get<int64_t>()});
    for (const int64_t layer : layers)
      point.push_back(row.at("layer_errors").at(static_cast<size_t>(layer)).get<double>());
    curve.push_back(std::move(point));
  }
  return curve;
}

}  // namespace

ImitationPlan ReadImitationPlan(const fs::path& file) {
  const json value = io::ReadJson(file);
  const std::string source = file.string();
  ImitationPlan plan;
  plan.title = io::GetJson<std::string>(value, "title", source);
  plan.text = ReadDistillText(value, source);
  plan.layers = value.at("layers").get<std::vector<int64_t>>();
  plan.seeds = value.at("seeds").get<std::vector<int64_t>>();
  plan.student = io::GetJson<std::string>(value, "student", source);
  plan.settings = value.at("settings").get<std::vector<std::string>>();
  for (const json& memory : value.at("memories")) {
    plan.memories.push_back({io::GetJson<std::string>(memory, "name", source),
                             io::GetJson<std::string>(memory, "mixer", source)});
  }
  return plan;
}

Outcome MakeImitation(const ImitationPlan& plan, const DistillOptions& options, const RunnerOptions& how) {
  std::vector<std::string> names;
  for (const ImitationPlan::Memory& memory : plan.memories) names.push_back(memory.name);
  CheckChosen(options, names);
  io::MakeDirectories(options.out);
  for (const int64_t seed : plan.seeds) {
    for (const ImitationPlan::Memory& memory : plan.memories) {
      if (!Chosen(options, memory.name)) continue;
      how.report(StrCat(memory.name, ", seed ", seed));
      const Outcome outcome =
          RunCommand(RunCommandOf(plan, options, memory, seed), options.out / "errors.txt", how);
      if (outcome != Outcome::kDone) return outcome;
    }
  }
  return Outcome::kDone;
}

void WriteImitation(const ImitationPlan& plan, const DistillOptions& options, const std::string& command) {
  const std::vector<int64_t> layers = Layers(plan, options.teacher);
  ordered_json memories = ordered_json::array();
  for (const ImitationPlan::Memory& memory : plan.memories) {
    ordered_json runs = ordered_json::array();
    for (const int64_t seed : plan.seeds) {
      ordered_json curve = ReadCurve(RunOf(options, memory, seed), layers);
      if (!curve.empty()) runs.push_back({{"seed", seed}, {"curve", std::move(curve)}});
    }
    if (!runs.empty())
      memories.push_back({{"name", memory.name}, {"mixer", memory.mixer}, {"runs", std::move(runs)}});
  }
  const ordered_json figures = {{"layers", layers}, {"memories", std::move(memories)}};
  DrawImitation(WriteDistillResults(options, "imitation", plan.title, command, figures));
}

}  // namespace lattice::reproduce
