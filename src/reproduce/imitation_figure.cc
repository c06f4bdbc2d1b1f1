// The table and the figure of the imitations of single layers, from their results.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "io/file.h"
#include "io/json.h"
#include "plot/svg_figure.h"
#include "plot/svg_parts.h"
#include "reproduce/imitation.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Spread {
  double mean = 0, low = 0, high = 0;
};

// The error at a point of the curve over the seeds of a memory: of the layer at a place, or the mean of all layers.
Spread ErrorAt(const json& memory, size_t point, int place) {
  std::vector<double> errors;
  for (const json& run : memory.at("runs")) {
    if (point >= run.at("curve").size()) continue;
    const json& at = run.at("curve")[point];
    double sum = 0;
    for (size_t i = 1; i < at.size(); ++i) sum += at[i].get<double>();
    errors.push_back(place < 0 ? sum / static_cast<double>(at.size() - 1)
                               : at[static_cast<size_t>(place) + 1].get<double>());
  }
  if (errors.empty()) return {};
  Spread out{0, *std::min_element(errors.begin(), errors.end()),
             *std::max_element(errors.begin(), errors.end())};
  for (const double error : errors) out.mean += error / static_cast<double>(errors.size());
  return out;
}

size_t Points(const json& memory) { return memory.at("runs").front().at("curve").size(); }

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
  return StrCat(out,
                "\nError: |y - y'|^2 / |y|^2 of what a layer adds to the stream, on text that the memory has "
                "not seen, mean of "
                "the last steps and over seeds, in brackets the lowest and highest seed. Made by `",
                results.at("command").get<std::string>(), "` at ", results.at("commit").get<std::string>(),
                " on ", results.at("cpu").get<std::string>(), ".\n");
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
