// The table and the figure of a conversion, from its results.json.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "io/file.h"
#include "io/json.h"
#include "plot/svg_figure.h"
#include "reproduce/conversion.h"
#include "reproduce/power_fit.h"

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
  std::string head = "| model | items |", line = "|---|---|";
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
    std::string out = StrCat("| ", name, " | ", tasks.front().at("n").get<int64_t>(), " |");
    for (const json& figures : tasks)
      out += StrCat(" ", Fixed(100 * figures.at("acc").get<double>(), 0), " |");
    return StrCat(out, " ", Fixed(100 * margin(tasks) / margin(teacher), 0), " |\n");
  };
  double largest_error = 0;
  for (const json& figures : teacher)
    largest_error = std::max(largest_error, figures.at("acc_stderr").get<double>());
  std::string out =
      StrCat("\nZero-shot accuracy in % (standard error of the teacher's at most ",
             Fixed(100 * largest_error, 1), "), and the margin over a guess in % of the teacher's:\n\n", head,
             " margin |\n", line, "---|\n", row("teacher", teacher));
  for (const json& student : results.at("students")) {
    if (!student.at("tasks").is_null())
      out += row(student.at("name").get<std::string>(), student.at("tasks"));
  }
  return out;
}

// What the last stage of every student might reach with four times its tokens.
std::string FurtherTable(const json& results) {
  std::string rows;
  for (const json& student : results.at("students")) {
    if (student.at("stages").empty()) continue;
    const json& stage = student.at("stages").back();
    std::vector<FitPoint> points;
    for (const json& point : stage.at("validations"))
      points.push_back({point[0].get<double>(), {{0, point[1].get<double>()}}});
    if (points.size() < 4) continue;  // three of a beginning stage extrapolate to anything
    const FitPoint& last = points.back();
    const double further = 4 * last.size;
    const auto fit = FitPowerLaw(points, further);
    if (!fit) continue;
    rows += StrCat("| ", student.at("name").get<std::string>(), " | ", stage.at("stage").get<std::string>(),
                   " | ", Fixed(last.perplexity.at(0), 2), " | ", Grouped(static_cast<int64_t>(further)),
                   " | ", Fixed(fit->perplexity.mean, 2), " |\n");
  }
  if (rows.empty()) return "";
  return StrCat(
      "\nFollowed further: a power law of the loss through the validations of the last stage, on the few "
      "held-out "
      "tokens that validate it. One seed, and rates that fall along each stage: a guess, no measurement.\n\n"
      "| model | stage | reached | tokens | perplexity there |\n|---|---|---|---|---|\n",
      rows);
}

// Where students were made that were not made with the rest.
std::string OtherOrigins(const json& results) {
  std::map<std::string, std::string> names;  // by where
  for (const json& student : results.at("students")) {
    const auto where = [](const json& of) {
      return StrCat(of.at("commit").get<std::string>(), " on ", of.at("cpu").get<std::string>());
    };
    if (!student.contains("commit") || where(student) == where(results)) continue;
    std::string& list = names[where(student)];
    list += StrCat(list.empty() ? "" : "; ", student.at("name").get<std::string>());
  }
  std::string out;
  for (const auto& [where, list] : names) out += StrCat(" At ", where, ": ", list, ".");
  return out;
}

std::string ConversionTable(const json& results) {
  return StrCat("# ", results.at("title").get<std::string>(), "\n\n", PerplexityTable(results),
                TaskTable(results), FurtherTable(results), "\nMade by `",
                results.at("command").get<std::string>(), "` at ", results.at("commit").get<std::string>(),
                " on ", results.at("cpu").get<std::string>(), ".", OtherOrigins(results), "\n");
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
