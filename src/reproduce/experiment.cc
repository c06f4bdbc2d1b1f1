// Parses and checks the description of an experiment.
#include "reproduce/experiment.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "io/json.h"
#include "reproduce/config_object.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kPaperFile = "paper";

using Texts = std::vector<std::string>;

Tool ToolOf(const std::string& name, const std::string& source) {
  if (name == "train") return Tool::kTrain;
  if (name == "tasks") return Tool::kTasks;
  if (name == "decode") return Tool::kDecode;
  Check(name == "mqar", source, ": tool is \"", name, "\"; expected train, tasks, mqar or decode");
  return Tool::kMqar;
}

Point ReadPoint(const json& value, const std::string& metric, const std::string& source) {
  ConfigObject in(value, source);
  Point point;
  point.label = in.Need<std::string>("label");
  point.x = in.Get<double>("x", 0);
  point.set = in.Get<Texts>("set", {});
  point.figure = in.Get<std::string>("figure", metric);
  point.paper = in.Get<std::string>("paper", point.label);
  point.panel = in.Get<std::string>("panel", "");
  point.rate_scale = in.Get<double>("rate_scale", 1);
  in.Finish();
  return point;
}

Variant ReadVariant(const json& value, const std::string& source) {
  ConfigObject in(value, source);
  Variant variant;
  variant.name = in.Need<std::string>("name");
  variant.set = in.Get<Texts>("set", {});
  variant.best_of = in.Get<std::string>("best_of", "");
  variant.tune = in.Get<std::string>("tune", variant.best_of.empty() ? variant.name : "");
  variant.points = in.Get<Texts>("points", {});
  variant.seeds = in.Get<std::vector<int64_t>>("seeds", {});
  variant.family = in.Get<std::string>("family", "");
  in.Finish();
  return variant;
}

Place ReadPlace(const Texts& words, const std::string& source) {
  Check(words.size() == 1 || words.size() == 2, source, ": a place is [variant] or [variant, point]");
  return {words[0], words.size() == 2 ? words[1] : ""};
}

Claim ReadClaim(const json& value, const std::string& source) {
  ConfigObject in(value, source);
  Claim claim;
  claim.text = in.Need<std::string>("text");
  claim.better = ReadPlace(in.Need<Texts>("better"), source);
  claim.than = ReadPlace(in.Need<Texts>("than"), source);
  in.Finish();
  return claim;
}

void ReadScale(const json& value, const std::string& source, Experiment& out) {
  ConfigObject in(value, source);
  out.config = in.Get<std::string>("config", "");
  out.set = in.Get<Texts>("set", {});
  out.selected_in = in.Get<std::string>("selected_in", out.selected_in);
  if (out.selected_in.empty()) out.rates = in.Need<std::vector<double>>("rates");
  out.pieces = in.Get<int64_t>("pieces", 0);
  out.seeds = in.Need<std::vector<int64_t>>("seeds");
  out.tune_point = in.Get<std::string>("tune_point", "");
  out.tune_each = in.Get<bool>("tune_each", false);
  out.tune_seeds = in.Get<size_t>("tune_seeds", 1);
  out.tune_keep = in.Get<size_t>("tune_keep", 2);
  out.task_limit = in.Get<int64_t>("task_limit", 0);
  out.jobs = in.Get<int>("jobs", 0);
  out.threads = in.Get<int>("threads", 1);
  for (const json& point : in.Get<json>("points", json::array({{{"label", ""}}})))
    out.points.push_back(ReadPoint(point, out.metric, source));
  const Texts names = in.Get<Texts>("variants", {});
  in.Finish();
  Check((!out.rates.empty() || !out.selected_in.empty()) && !out.seeds.empty(), source,
        ": rates and seeds must not be empty");
  Check(out.tune_seeds >= 1 && out.tune_keep >= 1, source, ": tune_seeds and tune_keep must be at least 1");
  for (const Variant& variant : out.variants)
    Check(variant.seeds.empty() || variant.seeds.size() >= out.tune_seeds, source, ": \"", variant.name,
          "\" has ", variant.seeds.size(), " seeds, but ", out.tune_seeds, " tune its learning rate");
  Check(!out.selected_in.empty() || out.seeds.size() >= out.tune_seeds, source, ": tune_seeds is ",
        out.tune_seeds, ", but there are ", out.seeds.size(), " seeds");
  Check(out.pieces == 0 || out.tool != Tool::kMqar, source, ": mqar has no tokenizer; leave out \"pieces\"");
  if (names.empty()) return;
  std::erase_if(out.variants, [&](const Variant& v) {
    return std::find(names.begin(), names.end(), v.name) == names.end();
  });
  Check(out.variants.size() == names.size(), source, ": \"variants\" names one that is not there");
}

}  // namespace

bool Variant::Has(const Point& point) const {
  return points.empty() || std::find(points.begin(), points.end(), point.label) != points.end();
}

bool Experiment::Better(double a, double b) const {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a);
  return higher ? a > b : a < b;
}

std::vector<std::string> ListExperiments(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".json" && entry.path().stem() != kPaperFile)
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Experiment ReadExperiment(const fs::path& directory, const std::string& name, const std::string& scale) {
  const Texts names = ListExperiments(directory);
  const std::vector<std::string_view> known(names.begin(), names.end());
  Check(std::find(names.begin(), names.end(), name) != names.end(), "[reproduce] there is no experiment \"",
        name, "\"", DidYouMean(name, known));
  const fs::path file = directory / (name + ".json");
  const std::string source = file.string();
  const json value = io::ReadJson(file);
  ConfigObject in(value, source);
  Experiment out;
  out.name = name, out.scale = scale;
  out.title = in.Need<std::string>("title");
  out.source = in.Need<std::string>("source");
  out.note = in.Get<std::string>("note", "");
  out.tool = ToolOf(in.Need<std::string>("tool"), source);
  out.corpus = in.Get<std::string>("corpus", "books");
  out.metric = in.Need<std::string>("metric");
  out.higher = in.Get<bool>("higher", false);
  out.x_label = in.Get<std::string>("x", "");
  out.y_label = in.Get<std::string>("y", out.metric);
  out.relative_to = in.Get<std::string>("relative_to", "");
  out.selected_in = in.Get<std::string>("selected_in", "");
  if (const json beyond = in.Get<json>("extrapolate", json()); !beyond.is_null()) {
    ConfigObject place(beyond, source);
    out.beyond_label = place.Need<std::string>("label");
    out.beyond_x = place.Need<double>("x");
    place.Finish();
  }
  for (const json& variant : in.Need<json>("variants")) out.variants.push_back(ReadVariant(variant, source));
  for (const json& claim : in.Get<json>("claims", json::array()))
    out.claims.push_back(ReadClaim(claim, source));
  const json scales = in.Need<json>("scales");
  in.Finish();
  Check(scales.contains(scale), source, ": there is no scale \"", scale, "\"");
  ReadScale(scales.at(scale), source + ", scale " + scale, out);
  Check(out.relative_to.empty() || std::any_of(out.variants.begin(), out.variants.end(),
                                               [&](const Variant& v) { return v.name == out.relative_to; }),
        source, ": relative_to names no variant of the scale ", scale, ": \"", out.relative_to, "\"");
  if (scales.contains("paper")) {
    for (const json& point : scales.at("paper").value("points", json::array()))
      out.paper_x[point.at("label")] = point.value("x", 0.0);
  }
  return out;
}

void Assign(Settings& settings, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  Check(equals != std::string::npos && equals > 0, "[reproduce] expected key=value, got \"", assignment,
        "\"");
  settings[assignment.substr(0, equals)] = assignment.substr(equals + 1);
}

}  // namespace lattice::reproduce
