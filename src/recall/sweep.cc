// The grid of a recall sweep, its result files, and the table and figure made of them.
#include "recall/sweep.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/format.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "kernels/registry.h"
#include "plot/svg_figure.h"
#include "plot/svg_parts.h"

namespace lattice::recall {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The learning rates that the paper swept.
std::vector<double> PaperRates(int64_t length) {
  if (length >= 2048) return {1e-2, 1e-3, 2.2e-4, 5e-5, 1e-5};
  return {1e-2, 3.16e-3, 1e-3, 3.16e-4, 1e-4};
}

struct Best {
  double accuracy = -1, lr = 0;
};
// (length, pairs) -> mixer -> width -> the best of all learning rates
using Bests = std::map<std::pair<int64_t, int64_t>, std::map<std::string, std::map<int64_t, Best>>>;

Bests BestOf(const json& results) {
  Bests bests;
  for (const auto& [name, result] : results.items()) {
    const json& s = result.at("settings");
    Best& best = bests[{s.at("length"), s.at("pairs")}][s.at("mixer")][s.at("width")];
    if (result.at("best_accuracy").get<double>() > best.accuracy)
      best = {result.at("best_accuracy"), s.at("lr")};
  }
  return bests;
}

}  // namespace

MqarGrid GridOf(const std::string& scale) {
  MqarGrid grid;
  grid.mixers = {"lattice_dec", "lattice_sim", "deltanet", "gated_deltanet", "gla", "mamba2"};
  if (scale == "paper") {
    grid.widths = {64, 128, 256, 512};
    grid.lengths = {1024, 2048};
    grid.pairs = {48, 96, 256};
    return grid;
  }
  Check(scale == "laptop", "[mqar] there is no scale \"", scale, "\"; there are paper and laptop");
  grid.mixers = {"lattice_dec", "deltanet", "gla"};
  grid.widths = {32, 64};
  grid.lengths = {64};
  grid.pairs = {4, 8};
  grid.rates = {1e-2, 3.16e-3};
  grid.base.task.vocab = 128;
  grid.base.batch = 32;
  grid.base.epochs = 8;
  grid.base.examples = 16000;
  grid.base.valid_examples = 500;
  grid.base.stop_at = 0.99;
  return grid;
}

std::vector<RecallPoint> PointsOf(const MqarGrid& grid) {
  std::vector<RecallPoint> points;
  for (const int64_t length : grid.lengths) {
    for (const int64_t pairs : grid.pairs) {
      for (const int64_t width : grid.widths) {
        for (const std::string& mixer : grid.mixers) {
          for (const double rate : grid.rates.empty() ? PaperRates(length) : grid.rates) {
            RecallPoint point = grid.base;
            kernels::FindMemory(mixer);
            point.mixer = mixer;
            point.width = width;
            point.lr = rate;
            point.task.length = length;
            point.task.pairs = pairs;
            MqarGenerator check(point.task);
            points.push_back(point);
          }
        }
      }
    }
  }
  return points;
}

fs::path ResultFile(const fs::path& out, const RecallPoint& point) {
  return out / "results" / (point.Name() + ".json");
}

bool IsDone(const fs::path& out, const RecallPoint& point) {
  const fs::path file = ResultFile(out, point);
  if (!fs::exists(file)) return false;
  Check(io::ReadJson(file).at("settings") == json::parse(point.Settings()), "[mqar] ", file.string(),
        " is the result of other settings; pass another --out, or remove the file");
  return true;
}

void WriteResult(const fs::path& out, const RecallPoint& point, const RecallReport& report) {
  io::MakeDirectories(out / "results");
  const nlohmann::ordered_json result = {
      {"accuracy", report.accuracy}, {"best_accuracy", report.best},
      {"loss", report.loss},         {"epochs", report.epoch},
      {"seconds", report.seconds},   {"settings", nlohmann::ordered_json::parse(point.Settings())}};
  io::WriteFileAtomic(ResultFile(out, point), result.dump(2) + "\n");
}

json ReadResults(const fs::path& out) {
  json results = json::object();
  if (!fs::is_directory(out / "results")) return results;
  for (const fs::directory_entry& entry : fs::directory_iterator(out / "results")) {
    if (entry.path().extension() == ".json")
      results[entry.path().stem().string()] = io::ReadJson(entry.path());
  }
  return results;
}

std::string MqarFigure(const json& results) {
  std::vector<plot::Panel> panels;
  for (const auto& [task, mixers] : BestOf(results)) {
    plot::Panel panel{.title = StrCat("L = ", task.first, ", ", task.second, " pairs"),
                      .x_label = "model width d",
                      .y_label = "accuracy",
                      .log_x = true,
                      .zero_to_one = true};
    for (const auto& [mixer, widths] : mixers) {
      plot::Curve series{.name = mixer, .colour = plot::SvgColourOf(mixer)};
      for (const auto& [width, best] : widths) series.points.emplace_back(width, best.accuracy);
      panel.series.push_back(series);
    }
    panels.push_back(panel);
  }
  return plot::SvgFigure("Multi-query associative recall", panels);
}

std::string MqarTable(const json& results) {
  std::string out;
  for (const auto& [task, mixers] : BestOf(results)) {
    out += StrCat("L = ", task.first, ", ", task.second, " pairs: accuracy by d, the best learning rate\n");
    for (const auto& [mixer, widths] : mixers) {
      out += "  " + mixer + std::string(mixer.size() < 16 ? 16 - mixer.size() : 1, ' ');
      for (const auto& [width, best] : widths)
        out += StrCat("  d ", width, ": ", Fixed(100 * best.accuracy, 1), " % (lr ", best.lr, ")");
      out += "\n";
    }
  }
  return out;
}

}  // namespace lattice::recall
