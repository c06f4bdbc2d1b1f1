// Draws the figure of an experiment: curves, rows, or differences to one variant.
#include "reproduce/figure.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "plot/svg_figure.h"
#include "plot/svg_parts.h"
#include "plot/svg_rows.h"

namespace lattice::reproduce {
namespace {

std::string Title(const Summary& summary) {
  return StrCat(summary.experiment->title, " (", summary.experiment->scale, " scale)");
}

// The colour of a variant: that of its memory, in a stack of several kinds that of the first layer's.
size_t ColourOf(const Experiment& experiment, const Variant& variant) {
  Settings settings;
  for (const std::string& text : experiment.set) Assign(settings, text);
  for (const std::string& text : variant.set) Assign(settings, text);
  model::ModelConfig config;
  const auto take = [&](const char* key, std::string& to) {
    if (settings.contains(key)) to = settings.at(key);
  };
  if (experiment.tool == Tool::kMqar) {
    take("mixers", config.mixer);
  } else {
    take("model.mixer", config.mixer);
    take("model.mixers", config.mixers);
  }
  return plot::SvgColourOf(config.Layer(0).mixer);
}

std::vector<plot::RowName> RowNames(const Experiment& experiment) {
  std::vector<plot::RowName> names;
  for (const Variant& variant : experiment.variants)
    names.push_back({variant.name, ColourOf(experiment, variant)});
  return names;
}

std::string OurTitle(const Experiment& experiment) {
  return experiment.seeds.size() == 1 ? "here"
                                      : StrCat("here, median of ", experiment.seeds.size(), " seeds");
}

// Points with panels are all shown; of others only the last, which is the average in the paper.
size_t FirstShown(const Experiment& experiment) {
  return experiment.points.front().panel.empty() ? experiment.points.size() - 1 : 0;
}

std::string PanelTitle(const Experiment& experiment, const Point& point) {
  if (!point.panel.empty()) return point.panel;
  return point.label.empty() ? OurTitle(experiment) : "here, " + point.label;
}

plot::Spread OurSpread(const Row& row) {
  return {row.values, row.median, std::isfinite(row.median) ? Fixed(row.median, 3) : "diverged"};
}

plot::Spread PaperSpread(const Row& row) {
  if (!row.paper) return {};
  return {{*row.paper}, *row.paper, Fixed(*row.paper, 2)};
}

// Whether all values are between 0 and 1.
bool IsPart(const Experiment& experiment) { return experiment.metric == "accuracy"; }

plot::RowsPanel RowsAt(const Summary& summary, size_t point, const std::string& title,
                       plot::Spread (*spread)(const Row&)) {
  plot::RowsPanel panel{title, summary.experiment->y_label, {}, IsPart(*summary.experiment)};
  for (size_t v = 0; v < summary.experiment->variants.size(); ++v) {
    const Row* row = summary.Find(v, point);
    panel.rows.push_back(row == nullptr ? plot::Spread{} : spread(*row));
  }
  return panel;
}

std::string RowsFigure(const Summary& summary) {
  const Experiment& experiment = *summary.experiment;
  const size_t count = experiment.points.size();
  std::vector<plot::RowsPanel> panels;
  for (size_t p = FirstShown(experiment); p < count; ++p)
    panels.push_back(RowsAt(summary, p, PanelTitle(experiment, experiment.points[p]), OurSpread));
  if (summary.HasPaper()) panels.push_back(RowsAt(summary, count - 1, "in the paper", PaperSpread));
  return plot::SvgRows(Title(summary), "", RowNames(experiment), panels);
}

// The difference of each seed, in per cent, from the same seed of the variant that others are compared with.
plot::Spread Difference(const Experiment& experiment, const Row& row, const Row& base) {
  const auto percent = [](double value, double of) { return 100 * (value / of - 1); };
  plot::Spread out;
  for (size_t i = 0; i < row.results.size(); ++i) {
    for (size_t j = 0; j < base.results.size(); ++j) {
      if (row.results[i].at("seed") == base.results[j].at("seed"))
        out.values.push_back(percent(row.values[i], base.values[j]));
    }
  }
  if (out.values.empty()) return out;
  out.middle = MedianOf(experiment, out.values);
  out.note =
      std::isfinite(out.middle) ? StrCat(out.middle > 0 ? "+" : "", Fixed(out.middle, 1), " %") : "diverged";
  if (row.paper && base.paper) out.reference = percent(*row.paper, *base.paper);
  return out;
}

// One panel for each point, because differences of a per cent would vanish on a common axis.
std::string DifferencesFigure(const Summary& summary) {
  const Experiment& experiment = *summary.experiment;
  const auto base = static_cast<size_t>(
      std::find_if(experiment.variants.begin(), experiment.variants.end(),
                   [&](const Variant& variant) { return variant.name == experiment.relative_to; }) -
      experiment.variants.begin());
  std::vector<plot::RowsPanel> panels;
  for (size_t p = 0; p < experiment.points.size(); ++p) {
    const Row* reference = summary.Find(base, p);
    if (reference == nullptr) continue;
    const Point& point = experiment.points[p];
    plot::RowsPanel panel{point.panel.empty() ? StrCat(experiment.x_label, " = ", point.label) : point.panel,
                          StrCat(experiment.y_label, ", % above ", experiment.relative_to),
                          {}};
    for (size_t v = 0; v < experiment.variants.size(); ++v) {
      const Row* row = summary.Find(v, p);
      panel.rows.push_back(row == nullptr ? plot::Spread{} : Difference(experiment, *row, *reference));
    }
    panels.push_back(std::move(panel));
  }
  const std::string key = StrCat("dots: ", OurTitle(experiment), ", each seed against the same seed of ",
                                 experiment.relative_to, summary.HasPaper() ? "; rings: in the paper" : "");
  return plot::SvgRows(Title(summary), key, RowNames(experiment), panels);
}

// The distinct panel names of the points, in order.
std::vector<std::string> PanelNames(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const Point& point : experiment.points) {
    if (std::find(names.begin(), names.end(), point.panel) == names.end()) names.push_back(point.panel);
  }
  return names;
}

// Whether the x axis is logarithmic: for a wide range of positive values.
bool IsLog(const Experiment& experiment) {
  double low = 0, high = 0;
  for (const Point& point : experiment.points) {
    if (point.x <= 0) return false;
    low = low == 0 ? point.x : std::min(low, point.x);
    high = std::max(high, point.x);
  }
  return high >= 2 * low;
}

plot::Panel OurPanel(const Summary& summary, const std::string& name) {
  const Experiment& experiment = *summary.experiment;
  plot::Panel panel{.title = name.empty() ? OurTitle(experiment) : name,
                    .x_label = experiment.x_label,
                    .y_label = experiment.y_label,
                    .log_x = IsLog(experiment),
                    .zero_to_one = IsPart(experiment)};
  for (size_t v = 0; v < experiment.variants.size(); ++v) {
    const Variant& variant = experiment.variants[v];
    plot::Curve series{.name = variant.name, .colour = ColourOf(experiment, variant)};
    for (const Row& row : summary.rows) {
      if (row.variant != v || summary.PointOf(row).panel != name) continue;
      series.points.emplace_back(summary.PointOf(row).x, row.median);
      series.ranges.emplace_back(row.low, row.high);
    }
    if (!series.points.empty()) panel.series.push_back(std::move(series));
  }
  return panel;
}

// The paper's values of these variants, at the paper's points.
plot::Panel PaperPanel(const Summary& summary, const PaperTable& paper) {
  const Experiment& experiment = *summary.experiment;
  plot::Panel panel{.title = "in the paper",
                    .x_label = experiment.x_label,
                    .y_label = experiment.y_label,
                    .log_x = IsLog(experiment)};
  for (const Variant& variant : experiment.variants) {
    plot::Curve series{.name = variant.name, .colour = ColourOf(experiment, variant)};
    for (const auto& [label, x] : experiment.paper_x) {
      const std::optional<double> value = paper.Value(experiment.name, variant.name, label);
      if (value) series.points.emplace_back(x, *value);
    }
    std::sort(series.points.begin(), series.points.end());
    if (!series.points.empty()) panel.series.push_back(std::move(series));
  }
  return panel;
}

}  // namespace

std::string FigureSvg(const Summary& summary, const PaperTable& paper) {
  const Experiment& experiment = *summary.experiment;
  if (!experiment.relative_to.empty()) return DifferencesFigure(summary);
  const std::vector<std::string> names = PanelNames(experiment);
  if (experiment.x_label.empty() || names.size() == experiment.points.size()) return RowsFigure(summary);
  std::vector<plot::Panel> panels;
  for (const std::string& name : names) panels.push_back(OurPanel(summary, name));
  const plot::Panel theirs = PaperPanel(summary, paper);
  if (!theirs.series.empty()) panels.push_back(theirs);
  return plot::SvgFigure(Title(summary), panels);
}

}  // namespace lattice::reproduce
