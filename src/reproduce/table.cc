// Formats a summary as tables.
#include "reproduce/table.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/format.h"
#include "reproduce/power_fit.h"

namespace lattice::reproduce {
namespace {

std::string Value(double value) {
  if (!std::isfinite(value)) return "diverged";
  const double size = std::abs(value);
  if (size >= 1000) return CountText(value);
  return Fixed(value, size < 2 ? 4 : size < 10 ? 3 : 2);
}

std::string Spread(const Row& row) {
  if (row.values.size() < 2 || !std::isfinite(row.low)) return "";
  return Value(row.low) + "–" + Value(row.high);
}

std::string Paper(const Row& row) { return row.paper ? Value(*row.paper) : "–"; }

// "15.02 (14.9–15.1), paper 15.02"
std::string CellText(const Summary& summary, const Row& row) {
  std::string out = Value(row.median);
  if (const std::string spread = Spread(row); !spread.empty()) out += " (" + spread + ")";
  if (row.values.size() < summary.experiment->SeedsOf(summary.VariantOf(row)).size())
    out += StrCat(" [", row.values.size(), row.values.size() == 1 ? " seed]" : " seeds]");
  if (row.paper) out += ", paper " + Value(*row.paper);
  return out;
}

Grid ByVariant(const Summary& summary) {
  Grid grid = {{"variant", "median " + summary.experiment->metric, "of seeds", "seeds", "learning rate",
                "parameters", "paper"}};
  for (const Row& row : summary.rows) {
    grid.push_back({summary.VariantOf(row).name, Value(row.median), Spread(row), StrCat(row.values.size()),
                    Short(row.rate, 3), Grouped(row.results[0].at("parameters")), Paper(row)});
  }
  return grid;
}

Grid ByPoint(const Summary& summary) {
  const Experiment& experiment = *summary.experiment;
  Grid grid = {{"variant"}};
  for (const Point& point : experiment.points) grid[0].push_back(point.Name());
  for (size_t v = 0; v < experiment.variants.size(); ++v) {
    std::vector<std::string> cells = {experiment.variants[v].name};
    for (size_t p = 0; p < experiment.points.size(); ++p) {
      const Row* row = summary.Find(v, p);
      cells.push_back(row == nullptr ? "" : CellText(summary, *row));
    }
    grid.push_back(std::move(cells));
  }
  return grid;
}

std::string Markdown(const Grid& grid) {
  std::string out;
  for (size_t i = 0; i < grid.size(); ++i) {
    out += "|";
    for (const std::string& cell : grid[i]) out += " " + cell + " |";
    out += "\n";
    if (i > 0) continue;
    out += "|";
    for (size_t c = 0; c < grid[0].size(); ++c) out += c == 0 ? "---|" : "---:|";
    out += "\n";
  }
  return out;
}

std::string Joined(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// "Lattice-Dec is Lattice-Dec, aligned; every learning rate"
std::string Chosen(const Summary& summary) {
  std::set<std::string> words;
  for (const Row& row : summary.rows) {
    if (!row.chosen.empty())
      words.insert(StrCat("\"", summary.VariantOf(row).name, "\" has the settings of \"", row.chosen, "\""));
  }
  return words.empty() ? "the learning rates" : StrCat("the learning rates; ", Joined(words));
}

std::string IntervalText(const PairedMean& mean) {
  return StrCat(Short(mean.low, 3), " to ", Short(mean.high, 3));
}

// The figures of a variant by size and seed.
std::vector<FitPoint> FitPoints(const Summary& summary, size_t variant) {
  std::vector<FitPoint> out;
  for (size_t p = 0; p < summary.experiment->points.size(); ++p) {
    const Row* row = summary.Find(variant, p);
    if (row == nullptr) continue;
    FitPoint point{summary.experiment->points[p].x, {}};
    for (size_t i = 0; i < row->results.size(); ++i)
      point.perplexity[row->results[i].at("seed")] = row->values[i];
    out.push_back(std::move(point));
  }
  return out;
}

std::string TuningNote(const Experiment& experiment) {
  const std::vector<int64_t>& seeds = experiment.seeds;
  if (experiment.tune_seeds == 1) return StrCat("Tried with seed ", seeds[0], ".");
  return StrCat("Tried with seed ", seeds[0], "; the best ", experiment.tune_keep, " with the seeds up to ",
                seeds[experiment.tune_seeds - 1], ", of which the mean is shown and the lowest marked.");
}

}  // namespace

Grid ResultGrid(const Summary& summary) {
  return summary.experiment->points.size() == 1 ? ByVariant(summary) : ByPoint(summary);
}

Grid VerdictGrid(const Summary& summary) {
  Grid grid = {{"claim", "here", "medians", "better by", "95 % interval", "seeds", "in the paper"}};
  for (const Verdict& verdict : summary.verdicts) {
    if (!verdict.measured) continue;
    const PairedMean& difference = verdict.difference;
    grid.push_back({verdict.claim->text, std::string(Name(verdict.finding)),
                    Value(verdict.better) + " / " + Value(verdict.than), Short(difference.mean, 3),
                    IntervalText(difference), StrCat(verdict.won, " of ", difference.pairs),
                    !verdict.paper   ? "–"
                    : *verdict.paper ? "holds"
                                     : "fails"});
  }
  return grid;
}

Grid FitGrid(const Summary& summary) {
  const Experiment& experiment = *summary.experiment;
  if (experiment.beyond_label.empty()) return {};
  Grid grid = {{"variant", "exponent of the loss", "95 % interval",
                StrCat("perplexity at ", experiment.beyond_label, ", extrapolated"), "95 % interval"}};
  for (size_t v = 0; v < experiment.variants.size(); ++v) {
    const auto fit = FitPowerLaw(FitPoints(summary, v), experiment.beyond_x);
    if (!fit) continue;
    grid.push_back({experiment.variants[v].name, Short(fit->exponent.mean, 3), IntervalText(fit->exponent),
                    Value(fit->perplexity.mean), IntervalText(fit->perplexity)});
  }
  return grid;
}

Grid TuningGrid(const Summary& summary) {
  Grid grid = {{"learning rate of"}};
  for (const double rate : summary.experiment->rates) grid[0].push_back(Short(rate, 3));
  for (const TunedRate& tuned : summary.tuning) {
    std::vector<std::string> cells = {tuned.group};
    for (const auto& [rate, value] : tuned.figures) {
      const bool best = tuned.best && *tuned.best == rate;
      cells.push_back(!value ? "" : best ? Value(*value) + " ←" : Value(*value));
    }
    if (tuned.figures.size() > 1) grid.push_back(std::move(cells));
  }
  return grid;
}

std::vector<Fact> Provenance(const Summary& summary) {
  std::set<std::string> commits, cpus, tokens;
  for (const Row& row : summary.rows) {
    for (const nlohmann::json& result : row.results) {
      commits.insert(result.at("commit"));
      cpus.insert(result.at("cpu"));
      tokens.insert(CountText(result.at("tokens").get<double>()));
    }
  }
  std::vector<Fact> out = {
      {"Command", summary.command, true},
      {"Runs", StrCat(summary.runs, " of ", summary.wanted, ", each of ", Joined(tokens), " tokens")},
      {"Commit", Joined(commits)},
      {"Processor", Joined(cpus)},
      {"Settings, hash and command of every run", "results.json", true}};
  if (!summary.experiment->selected_in.empty())
    out.push_back({"Selected in " + summary.experiment->selected_in, Chosen(summary)});
  return out;
}

std::string TableMarkdown(const Summary& summary) {
  const Experiment& experiment = *summary.experiment;
  std::string out =
      StrCat("# ", experiment.title, "\n\nScale ", experiment.scale, "; in the paper: ", experiment.source,
             ". ", experiment.higher ? "More" : "Less", " is better. ", experiment.note,
             "\n\n![figure](figure.svg)\n\n", Markdown(ResultGrid(summary)));
  const Grid verdicts = VerdictGrid(summary), tuning = TuningGrid(summary), fits = FitGrid(summary);
  if (verdicts.size() > 1) out += StrCat("\n## Claims\n\n", Markdown(verdicts), "\n", kVerdictNote, "\n");
  if (fits.size() > 1) out += StrCat("\n## Beyond\n\n", Markdown(fits), "\n", kFitNote, "\n");
  if (tuning.size() > 1)
    out += StrCat("\n## Learning rates\n\n", TuningNote(experiment), "\n\n", Markdown(tuning));
  out += "\n## Where this comes from\n\n";
  for (const Fact& fact : Provenance(summary))
    out += StrCat("- ", fact.name, ": ", fact.code ? "`" : "", fact.text, fact.code ? "`" : "", "\n");
  return out;
}

}  // namespace lattice::reproduce
