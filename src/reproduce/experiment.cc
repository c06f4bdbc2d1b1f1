// Parses and checks the description of an experiment.
#include "reproduce/experiment.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "io/json.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kPaperFile = "paper";

// Typed access to a JSON object of the file; Finish refuses keys that nobody has read.
class Object {
 public:
  Object(const json& value, std::string source) : value_(value), source_(std::move(source)) {
    Check(value_.is_object(), source_, ": expected an object");
  }

  template <typename T>
  T Need(const std::string& key) {
    known_.insert(key);
    Check(value_.contains(key), source_, ": \"", key, "\" is missing");
    return Cast<T>(key);
  }

  template <typename T>
  T Get(const std::string& key, T fallback) {
    known_.insert(key);
    return value_.contains(key) ? Cast<T>(key) : fallback;
  }

  // Call after everything was read.
  void Finish() const {
    for (const auto& [key, unused] : value_.items())
      Check(known_.contains(key), source_, ": there is no key \"", key, "\"");
  }

 private:
  template <typename T>
  T Cast(const std::string& key) const {
    try {
      return value_.at(key).get<T>();
    } catch (const json::exception&) {
      Fail(source_, ": \"", key, "\" has the wrong type");
    }
  }

  const json& value_;
  std::string source_;
  std::set<std::string> known_;
};

using Texts = std::vector<std::string>;

Tool ToolOf(const std::string& name, const std::string& source) {
  if (name == "train") return Tool::kTrain;
  if (name == "tasks") return Tool::kTasks;
  Check(name == "mqar", source, ": tool is \"", name, "\"; expected train, tasks or mqar");
  return Tool::kMqar;
}

Point ReadPoint(const json& value, const std::string& metric, const std::string& source) {
  Object in(value, source);
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
  Object in(value, source);
  Variant variant;
  variant.name = in.Need<std::string>("name");
  variant.set = in.Get<Texts>("set", {});
  variant.tune = in.Get<std::string>("tune", variant.name);
  variant.points = in.Get<Texts>("points", {});
  variant.seeds = in.Get<std::vector<int64_t>>("seeds", {});
  variant.family = in.Get<std::string>("family", "");
  variant.best_of = in.Get<std::string>("best_of", "");
  in.Finish();
  return variant;
}

Place ReadPlace(const Texts& words, const std::string& source) {
  Check(words.size() == 1 || words.size() == 2, source, ": a place is [variant] or [variant, point]");
  return {words[0], words.size() == 2 ? words[1] : ""};
}

Claim ReadClaim(const json& value, const std::string& source) {
  Object in(value, source);
  Claim claim;
  claim.text = in.Need<std::string>("text");
  claim.better = ReadPlace(in.Need<Texts>("better"), source);
  claim.than = ReadPlace(in.Need<Texts>("than"), source);
  in.Finish();
  return claim;
}

void ReadScale(const json& value, const std::string& source, Experiment& out) {
  Object in(value, source);
  out.config = in.Get<std::string>("config", "");
  out.set = in.Get<Texts>("set", {});
  if (out.selected_in.empty()) out.rates = in.Need<std::vector<double>>("rates");
  out.pieces = in.Get<int64_t>("pieces", 0);
  out.seeds = in.Need<std::vector<int64_t>>("seeds");
  out.tune_point = in.Get<std::string>("tune_point", "");
  out.tune_each = in.Get<bool>("tune_each", false);
  out.task_limit = in.Get<int64_t>("task_limit", 0);
  out.jobs = in.Get<int>("jobs", 0);
  out.threads = in.Get<int>("threads", 1);
  for (const json& point : in.Get<json>("points", json::array({{{"label", ""}}})))
    out.points.push_back(ReadPoint(point, out.metric, source));
  const Texts names = in.Get<Texts>("variants", {});
  in.Finish();
  Check((!out.rates.empty() || !out.selected_in.empty()) && !out.seeds.empty(), source,
        ": rates and seeds must not be empty");
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
  Object in(value, source);
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
