// Writes results.json, table.md, figure.svg and report.html of an experiment.
#include "reproduce/results.h"

#include "base/error.h"
#include "base/format.h"
#include "io/directory.h"
#include "io/file.h"
#include "plot/page.h"
#include "reproduce/figure.h"
#include "reproduce/table.h"
#include "text/markup.h"

namespace lattice::reproduce {
namespace {

using text::Escaped;

std::string HtmlTable(const Grid& grid) {
  std::string out = "<div class=\"table\"><table>\n";
  for (size_t i = 0; i < grid.size(); ++i) {
    const char* tag = i == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& cell : grid[i]) out += StrCat("<", tag, ">", Escaped(cell), "</", tag, ">");
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string Section(const char* title, const Grid& grid) {
  return grid.size() > 1 ? StrCat("<h2>", title, "</h2>\n", HtmlTable(grid)) : "";
}

std::string RunRow(const Summary& summary, const Row& row, size_t i) {
  const nlohmann::json& result = row.results[i];
  const auto text = [&](const char* key) { return Escaped(result.at(key).get<std::string>()); };
  const std::string point = summary.PointOf(row).label;
  return StrCat("<tr><td>", Escaped(summary.VariantOf(row).name + (point.empty() ? "" : ", " + point)),
                "</td><td>", result.at("seed").get<int64_t>(), "</td><td>", Short(row.values[i], 5),
                "</td><td><code>", text("id"), "</code></td><td><code>", text("commit"), "</code></td><td>",
                text("cpu"), "</td><td class=\"wrap\"><code>", text("command"), "</code></td></tr>\n");
}

std::string RunTable(const Summary& summary) {
  std::string out =
      "<details><summary>All runs</summary><div "
      "class=\"table\"><table><tr><th>run</th><th>seed</th><th>value</th>"
      "<th>hash</th><th>commit</th><th>processor</th><th>command</th></tr>\n";
  for (const Row& row : summary.rows) {
    for (size_t i = 0; i < row.results.size(); ++i) out += RunRow(summary, row, i);
  }
  return out + "</table></div></details>\n";
}

}  // namespace

std::string ReportPage(const Summary& summary, const PaperTable& paper) {
  const Experiment& experiment = *summary.experiment;
  std::string out = plot::PageStart(experiment.title);
  out += StrCat("<p>Scale ", experiment.scale, "; in the paper: ", Escaped(experiment.source), ". ",
                experiment.higher ? "More" : "Less", " is better. ", Escaped(experiment.note),
                "</p>\n<figure>", FigureSvg(summary, paper), "</figure>\n");
  out += Section("Results", ResultGrid(summary));
  if (const std::string claims = Section("Claims of the paper", VerdictGrid(summary)); !claims.empty())
    out += StrCat(claims, "<p>", kVerdictNote, "</p>\n");
  if (const std::string fits = Section("Beyond", FitGrid(summary)); !fits.empty())
    out += StrCat(fits, "<p>", kFitNote, "</p>\n");
  out += Section("Learning rates", TuningGrid(summary));
  out += "<h2>Where this comes from</h2>\n<ul>";
  for (const Fact& fact : Provenance(summary)) {
    out += StrCat("<li>", fact.name, ": ", fact.code ? "<code>" : "", Escaped(fact.text),
                  fact.code ? "</code>" : "", "</li>");
  }
  return StrCat(out, "</ul>\n", RunTable(summary), plot::kPageEnd);
}

void WriteResults(const Summary& summary, const PaperTable& paper, const std::filesystem::path& directory) {
  Check(!summary.rows.empty(), "[reproduce] no run of ", summary.experiment->name, " is done yet");
  io::MakeDirectories(directory);
  io::WriteFileAtomic(directory / "results.json", ToJson(summary).dump(1) + "\n");
  io::WriteFileAtomic(directory / "table.md", TableMarkdown(summary));
  io::WriteFileAtomic(directory / "figure.svg", FigureSvg(summary, paper));
  io::WriteFileAtomic(directory / "report.html", ReportPage(summary, paper));
}

}  // namespace lattice::reproduce
