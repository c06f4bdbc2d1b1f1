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

// What is known of the text with that name, or null.
const json* TextOf(const json& texts, const std::string& name) {
  for (const json& text : texts) {
    if (text.at("text") == name) return &text;
  }
  return nullptr;
}

// A perplexity and how many times the teacher's it is; empty where it was not measured.
std::string PerplexityText(const json* text, const json& of_teacher) {
  if (text == nullptr) return "";
  const auto perplexity = text->at("perplexity").get<double>();
  return StrCat(Fixed(perplexity, 2), " (", Fixed(perplexity / of_teacher.at("perplexity").get<double>(), 3),
                "x)");
}

std::string StageRow(const std::string& name, const json& stage, const json& teacher) {
  std::string out = StrCat("| ", name, " | ", stage.at("stage").get<std::string>(), " | ",
                           stage.contains("tokens") ? Grouped(stage.at("tokens").get<int64_t>()) : "", " |");
  for (const json& text : teacher)
    out += StrCat(" ", PerplexityText(TextOf(stage.at("texts"), text.at("text")), text), " |");
  if (!stage.contains("loss")) return out + " | |\n";
  const auto figure = [&](const char* key, int digits) { return Fixed(stage.at(key).get<double>(), digits); };
  out += stage.contains("error") ? StrCat(" ", figure("first_error", 3), " -> ", figure("error", 3), " |")
                                 : " |";
  return StrCat(out, " ", figure("tokens_per_s", 0), " |\n");
}

std::string PerplexityTable(const json& results) {
  const json& teacher = results.at("teacher").at("texts");
  std::string out = "| model | stage | tokens |";
  for (const json& text : teacher)
    out += StrCat(" ", text.at("text").get<std::string>(), ", ", Grouped(text.at("context").get<int64_t>()),
                  " tokens |");
  out += " error of the layers | tokens/s |\n|---|---|---|";
  for (size_t i = 0; i < teacher.size() + 2; ++i) out += "---|";
  out += "\n| teacher | | |";
  for (const json& text : teacher) out += StrCat(" ", Fixed(text.at("perplexity").get<double>(), 2), " |");
  out += " | |\n";
  for (const json& student : results.at("students")) {
    for (const json& stage : student.at("stages"))
      out += StageRow(student.at("name").get<std::string>(), stage, teacher);
  }
  return out;
}

// Accuracies, and how much of the teacher's margin over a guess is left in the mean of the tasks.
std::string TaskTable(const json& results) {
  const json& teacher = results.at("teacher").at("tasks");
  if (teacher.is_null()) return "";
  std::string head = "| model |", line = "|---|";
  for (const auto& [task, figures] : teacher.items()) {
    head += StrCat(" ", task, " |");
    line += "---|";
  }
  const auto margin = [](const json& tasks) {
    double sum = 0;
    for (const json& figures : tasks)
      sum += figures.at("acc").get<double>() - figures.at("chance").get<double>();
    return sum;
  };
  const auto row = [&](const std::string& name, const json& tasks) {
    std::string out = StrCat("| ", name, " |");
    for (const json& figures : tasks)
      out += StrCat(" ", Fixed(100 * figures.at("acc").get<double>(), 0), " |");
    return StrCat(out, " ", Fixed(100 * margin(tasks) / margin(teacher), 0), " |\n");
  };
  std::string out =
      StrCat("\nZero-shot accuracy in %, ", teacher.front().at("n").get<int64_t>(),
             " items a task (standard error about 5), and the margin over a guess in % of the teacher's:\n\n",
             head, " margin |\n", line, "---|\n", row("teacher", teacher));
  for (const json& student : results.at("students")) {
    if (!student.at("tasks").is_null())
      out += row(student.at("name").get<std::string>(), student.at("tasks"));
  }
  return out;
}

std::string ConversionTable(const json& results) {
  return StrCat("# ", results.at("title").get<std::string>(), "\n\n", PerplexityTable(results),
                TaskTable(results), "\nMade by `", results.at("command").get<std::string>(), "` at ",
                results.at("commit").get<std::string>(), " on ", results.at("cpu").get<std::string>(), ".\n");
}

// Perplexity on held-out text during training, the stages of a student one behind the other.
plot::Panel ByTokens(const json& results) {
  plot::Panel panel{.title = "Perplexity against training tokens",
                    .x_label = "tokens",
                    .y_label = "perplexity on held-out text",
                    .log_x = true,
                    .log_y = true};
  for (const json& student : results.at("students")) {
    plot::Curve curve{student.at("name").get<std::string>()};
    double before = 0;
    for (const json& stage : student.at("stages")) {
      for (const json& point : stage.at("validations"))
        curve.points.emplace_back(before + point[0].get<double>(), point[1].get<double>());
      before += stage.value("tokens", 0.0);
    }
    panel.series.push_back(std::move(curve));
  }
  return panel;
}

// How many nats a token worse than the teacher a model is, by position; the first tokens, where all are the teacher, are
// left out.
plot::Panel ByPosition(const json& results, const json& of_teacher) {
  constexpr int64_t kFirst = 64;
  const auto name = of_teacher.at("text").get<std::string>();
  plot::Panel panel{.title = StrCat("Behind the teacher on ", name),
                    .x_label = "tokens read before",
                    .y_label = "nats a token more than the teacher",
                    .log_x = true};
  for (const json& student : results.at("students")) {
    if (student.at("stages").empty()) continue;
    const json* text = TextOf(student.at("stages").back().at("texts"), name);
    if (text == nullptr) continue;
    plot::Curve curve{student.at("name").get<std::string>()};
    const json &ours = text->at("curve"), &theirs = of_teacher.at("curve");
    for (size_t i = 0; i < ours.size(); ++i) {
      if (ours[i].at("from").get<int64_t>() < kFirst) continue;
      curve.points.emplace_back((ours[i].at("from").get<double>() + ours[i].at("to").get<double>() + 1) / 2,
                                ours[i].at("loss").get<double>() - theirs[i].at("loss").get<double>());
    }
    panel.series.push_back(std::move(curve));
  }
  return panel;
}

std::string ConversionFigure(const json& results) {
  std::vector<plot::Panel> panels = {ByTokens(results)};
  for (const json& text : results.at("teacher").at("texts")) panels.push_back(ByPosition(results, text));
  return plot::SvgFigure(results.at("title").get<std::string>(), panels);
}

}  // namespace

void DrawConversion(const fs::path& directory) {
  const json results = io::ReadJson(directory / "results.json");
  io::WriteFileAtomic(directory / "table.md", ConversionTable(results));
  io::WriteFileAtomic(directory / "figure.svg", ConversionFigure(results));
}

}  // namespace lattice::reproduce
