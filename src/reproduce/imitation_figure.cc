// The table and the figure of the imitations of single layers, from their results.json.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "io/file.h"
#include "io/json.h"
#include "plot/svg_figure.h"
#include "plot/svg_parts.h"
#include "reproduce/imitation.h"
#include "reproduce/paired.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Spread {
  double mean = 0, low = 0, high = 0;
};

// The error at a point of a run's curve: of the layer at a place, or the mean of all layers.
double ErrorOf(const json& at, int place) {
  if (place >= 0) return at[static_cast<size_t>(place) + 1].get<double>();
  double sum = 0;
  for (size_t i = 1; i < at.size(); ++i) sum += at[i].get<double>();
  return sum / static_cast<double>(at.size() - 1);
}

// The same over the seeds of a memory.
Spread ErrorAt(const json& memory, size_t point, int place) {
  std::vector<double> errors;
  for (const json& run : memory.at("runs")) {
    if (point < run.at("curve").size()) errors.push_back(ErrorOf(run.at("curve")[point], place));
  }
  if (errors.empty()) return {};
  Spread out{0, *std::min_element(errors.begin(), errors.end()),
             *std::max_element(errors.begin(), errors.end())};
  for (const double error : errors) out.mean += error / static_cast<double>(errors.size());
  return out;
}

size_t Points(const json& memory) { return memory.at("runs").front().at("curve").size(); }

// The last mean errors by seed.
std::map<int64_t, double> LastErrors(const json& memory) {
  std::map<int64_t, double> out;
  for (const json& run : memory.at("runs"))
    out[run.at("seed").get<int64_t>()] = ErrorOf(run.at("curve").back(), -1);
  return out;
}

// Seed by seed, in which both memories learn from the same text in the same order: whether the first memory's error is
// lower than each other's.
std::string ComparisonTable(const json& results) {
  const json& memories = results.at("memories");
  const std::string name = memories.front().at("name").get<std::string>();
  const std::map<int64_t, double> own = LastErrors(memories.front());
  std::string out = StrCat(
      "\n## ", name, " against each other memory\n\n| the error of ", name,
      " is lower than that of | finding | lower by | 95 % interval | seeds |\n|---|---|---|---|---|\n");
  for (size_t i = 1; i < memories.size(); ++i) {
    std::vector<double> differences;
    for (const auto& [seed, error] : LastErrors(memories[i])) {
      if (own.contains(seed)) differences.push_back(error - own.at(seed));
    }
    const PairedMean mean = MeanOfDifferences(differences);
    const auto lower = std::count_if(differences.begin(), differences.end(), [](double x) { return x > 0; });
    out += StrCat("| ", memories[i].at("name").get<std::string>(), " | ", Name(FindingOf(mean)), " | ",
                  Fixed(mean.mean, 3), " | ", Fixed(mean.low, 3), " to ", Fixed(mean.high, 3), " | ", lower,
                  " of ", differences.size(), " |\n");
  }
  return out;
}

std::string ImitationTable(const json& results) {
  std::string out =
      StrCat("# ", results.at("title").get<std::string>(), "\n\n| memory | mean of the layers |");
  for (const json& layer : results.at("layers")) out += StrCat(" layer ", layer.get<int64_t>(), " |");
  out += " seeds | tokens |\n|---|---|---|---|";
  for (size_t i = 0; i < results.at("layers").size(); ++i) out += "---|";
  out += "\n";
  for (const json& memory : results.at("memories")) {
    const size_t last = Points(memory) - 1;
    const Spread all = ErrorAt(memory, last, -1);
    out += StrCat("| ", memory.at("name").get<std::string>(), " | ", Fixed(all.mean, 3), " (",
                  Fixed(all.low, 3), " to ", Fixed(all.high, 3), ") |");
    for (size_t i = 0; i < results.at("layers").size(); ++i)
      out += StrCat(" ", Fixed(ErrorAt(memory, last, static_cast<int>(i)).mean, 3), " |");
    out += StrCat(" ", memory.at("runs").size(), " | ",
                  Grouped(memory.at("runs").front().at("curve")[last][0].get<int64_t>()), " |\n");
  }
  return StrCat(
      out, ComparisonTable(results),
      "\nError: |y - y'|^2 / |y|^2 of what a layer adds to the stream, on text that the memory has "
      "not seen, mean of "
      "the last steps and over seeds, in brackets the lowest and highest seed. A finding needs an interval "
      "without zero (bootstrap of the paired differences) and at least ",
      kLeastPairs, " seeds. Made by `", results.at("command").get<std::string>(), "` at ",
      results.at("commit").get<std::string>(), " on ", results.at("cpu").get<std::string>(), ".\n");
}

plot::Panel ErrorPanel(const json& results, const std::string& title, int place) {
  plot::Panel panel{.title = title,
                    .x_label = "tokens",
                    .y_label = "error of the layer's output",
                    .log_x = true,
                    .log_y = true};
  for (const json& memory : results.at("memories")) {
    plot::Curve curve{.name = memory.at("name").get<std::string>(),
                      .colour = plot::SvgColourOf(memory.at("mixer").get<std::string>())};
    for (size_t i = 0; i < Points(memory); ++i) {
      const Spread error = ErrorAt(memory, i, place);
      curve.points.emplace_back(memory.at("runs").front().at("curve")[i][0].get<double>(), error.mean);
      curve.ranges.emplace_back(error.low, error.high);
    }
    panel.series.push_back(std::move(curve));
  }
  return panel;
}

std::string ImitationFigure(const json& results) {
  std::vector<plot::Panel> panels = {ErrorPanel(results, "Mean of the layers", -1)};
  for (size_t i = 0; i < results.at("layers").size(); ++i) {
    panels.push_back(
        ErrorPanel(results, StrCat("Layer ", results.at("layers")[i].get<int64_t>()), static_cast<int>(i)));
  }
  return plot::SvgFigure(results.at("title").get<std::string>(), panels);
}

}  // namespace

void DrawImitation(const fs::path& directory) {
  const json results = io::ReadJson(directory / "results.json");
  io::WriteFileAtomic(directory / "table.md", ImitationTable(results));
  io::WriteFileAtomic(directory / "figure.svg", ImitationFigure(results));
}

}  // namespace lattice::reproduce
