// `lattice plot`: draws figures that other programs describe as JSON.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/standard_input.h"
#include "io/file.h"
#include "io/json.h"
#include "plot/figure_json.h"

namespace lattice::cli {
namespace {

struct PlotFlags {
  std::string figure, out;
};

nlohmann::json ReadFigure(const std::string& path) {
  if (path != "-") return io::ReadJson(path);
  return io::ParseJson(TextOrInput(path), "standard input");
}

int Plot(const PlotFlags& options) {
  const std::string svg = plot::FigureFromJson(ReadFigure(options.figure), options.figure);
  if (options.out == "-") {
    std::cout << svg;
  } else {
    io::WriteFileAtomic(options.out, svg);
    std::cout << options.out << "\n";
  }
  return 0;
}

}  // namespace

void AddPlot(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("plot", "Draw a figure that is described as JSON, as SVG");
  const auto options = std::make_shared<PlotFlags>();
  command->add_option("figure", options->figure, "file with the description; - reads standard input")
      ->required();
  command->add_option("--out", options->out, "file to write; - is standard output")->default_val("-");
  command->footer(
      "The description is explained in src/plot/figure_json.h. Example: ./lattice plot figure.json --out "
      "figure.svg");
  command->callback([options, &chosen] { chosen = [options] { return Plot(*options); }; });
}

}  // namespace lattice::cli
