// The table and the figure of a conversion, from its results.json.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "io/file.h"
#include "io/json.h"
#include "plot/svg_figure.h"
#include "reproduce/conversion.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The perplexity at a context, or 0 when there is none.
double PerplexityAt(const json& evaluation, int64_t context) {
  if (evaluation.is_null()) return 0;
  for (const json& result : evaluation) {
    if (result.at("context") == context) return result.at("perplexity").get<double>();
  }
  return 0;
}

std::vector<int64_t> Contexts(const json& results) {
  std::vector<int64_t> contexts;
  if (results.at("teacher").is_null()) return contexts;
  for (const json& result : results.at("teacher")) contexts.push_back(result.at("context").get<int64_t>());
  return contexts;
}

std::string RatioText(double perplexity, double teacher) {
  if (perplexity <= 0) return "";
  return teacher > 0 ? StrCat(Fixed(perplexity, 2), " (", Fixed(perplexity / teacher, 3), "x)")
                     : Fixed(perplexity, 2);
}

std::string ConversionTable(const json& results) {
  const std::vector<int64_t> contexts = Contexts(results);
  std::string out = StrCat("# ", results.at("title").get<std::string>(), "\n\n| model | tokens, by stage |");
  for (const int64_t context : contexts) out += StrCat(" perplexity at ", context, " |");
  out += " error of the layers | tokens/s |\n|---|---|";
  for (size_t i = 0; i < contexts.size() + 2; ++i) out += "---|";
  out += "\n| teacher | |";
  for (const int64_t context : contexts)
    out += StrCat(" ", RatioText(PerplexityAt(results.at("teacher"), context), 0), " |");
  out += " | |\n";
  for (const json& student : results.at("students")) {
    std::string tokens, error, speed;
    for (const json& stage : student.at("stages")) {
      if (!stage.contains("tokens")) continue;
      const std::string name = stage.at("stage").get<std::string>();
      tokens += StrCat(tokens.empty() ? "" : ", ", name, " ", Grouped(stage.at("tokens").get<int64_t>()));
      speed += StrCat(speed.empty() ? "" : ", ", Fixed(stage.at("tokens_per_s").get<double>(), 0));
      if (name == "imitate")
        error = StrCat(Fixed(stage.at("first_loss").get<double>(), 3), " -> ",
                       Fixed(stage.at("loss").get<double>(), 3));
    }
    out += StrCat("| ", student.at("name").get<std::string>(), " | ", tokens, " |");
    for (const int64_t context : contexts) {
      out += StrCat(" ",
                    RatioText(PerplexityAt(student.at("evaluation"), context),
                              PerplexityAt(results.at("teacher"), context)),
                    " |");
    }
    out += StrCat(" ", error, " | ", speed, " |\n");
  }
  return StrCat(out, "\nMade by `", results.at("command").get<std::string>(), "` at ",
                results.at("commit").get<std::string>(), " on ", results.at("cpu").get<std::string>(), ".\n");
}

std::string ConversionFigure(const json& results) {
  plot::Panel tokens{.title = "Perplexity against training tokens",
                     .x_label = "tokens",
                     .y_label = "perplexity on held-out text",
                     .log_x = true,
                     .log_y = true};
  plot::Panel positions{
      .title = "Loss by position", .x_label = "tokens read before", .y_label = "nats a token", .log_x = true};
  const auto by_position = [&](const std::string& name, const json& evaluation) {
    if (evaluation.is_null() || evaluation.empty()) return;
    plot::Curve curve{name};
    for (const json& point : evaluation.back().at("curve")) {
      curve.points.emplace_back((point.at("from").get<double>() + point.at("to").get<double>() + 1) / 2,
                                point.at("loss").get<double>());
    }
    positions.series.push_back(std::move(curve));
  };
  by_position("teacher", results.at("teacher"));
  for (const json& student : results.at("students")) {
    const auto name = student.at("name").get<std::string>();
    plot::Curve curve{name};
    double before = 0;
    for (const json& stage : student.at("stages")) {
      for (const json& point : stage.at("validations"))
        curve.points.emplace_back(before + point[0].get<double>(), point[1].get<double>());
      before += stage.value("tokens", 0.0);
    }
    tokens.series.push_back(std::move(curve));
    by_position(name, student.at("evaluation"));
  }
  return plot::SvgFigure(results.at("title").get<std::string>(), std::vector{tokens, positions});
}

}  // namespace

void DrawConversion(const fs::path& directory) {
  const json results = io::ReadJson(directory / "results.json");
  io::WriteFileAtomic(directory / "table.md", ConversionTable(results));
  io::WriteFileAtomic(directory / "figure.svg", ConversionFigure(results));
}

}  // namespace lattice::reproduce
