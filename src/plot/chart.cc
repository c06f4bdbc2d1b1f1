// Renders a line chart as an inline SVG for HTML pages.
#include "plot/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/format.h"
#include "base/ticks.h"
#include "text/markup.h"

namespace lattice::plot {
namespace {

using Points = std::vector<std::pair<double, double>>;
using text::Escaped;

constexpr double kWidth = 520, kHeight = 240;
constexpr double kLeft = 52, kRight = 18, kTop = 8, kBottom = 26;
constexpr size_t kMostPoints = 400;
constexpr int kRows = 7;  // approximate number of intervals between ticks
constexpr size_t kMostLogTicks = 9;

// Averages neighbouring points until at most kMostPoints are left; a chart has no room for more.
Points Thinned(const Points& points) {
  if (points.size() <= kMostPoints) return points;
  Points out;
  const size_t bucket = (points.size() + kMostPoints - 1) / kMostPoints;
  for (size_t begin = 0; begin < points.size(); begin += bucket) {
    const size_t end = std::min(points.size(), begin + bucket);
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) x += points[i].first, y += points[i].second;
    out.emplace_back(x / static_cast<double>(end - begin), y / static_cast<double>(end - begin));
  }
  return out;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// The CSS classes of a curve, and of its sample in the legend.
std::string Classes(const ChartLine& line) {
  return StrCat("line", line.strong ? " strong" : "", line.dashed ? " dashed" : "");
}

class Picture {
 public:
  explicit Picture(const Chart& chart) : log_(chart.log) {
    for (const ChartLine& line : chart.lines) {
      ChartLine kept = line;
      kept.points.clear();
      for (const auto& [x, y] : Thinned(line.points)) {
        if (!std::isfinite(y) || (log_ && y <= 0)) continue;
        kept.points.emplace_back(x, log_ ? std::log10(y) : y);
        x_.Take(x);
        y_.Take(kept.points.back().second);
      }
      if (!kept.points.empty()) lines_.push_back(std::move(kept));
    }
    if (empty()) return;
    x_.Take(0);
    const double room = y_.high > y_.low ? 0.04 * (y_.high - y_.low) : std::max(0.5 * std::abs(y_.low), 1e-9);
    // The axis of a non-negative quantity does not extend below 0.
    const bool positive = !log_ && y_.low >= 0;
    y_.low = positive ? std::max(0.0, y_.low - room) : y_.low - room;
    y_.high += room;
    if (x_.high <= x_.low) x_.high = x_.low + 1;
  }

  bool empty() const { return lines_.empty(); }
  const std::vector<ChartLine>& lines() const { return lines_; }

  std::string Svg(const std::string& title) const {
    std::string out = StrCat("<svg viewBox=\"0 0 ", kWidth, " ", kHeight, "\" role=\"img\" aria-label=\"",
                             Escaped(title), "\">");
    const std::vector<double> columns = LinearTicks(x_.low, x_.high, 6);
    const std::vector<double> rows =
        log_ ? LogTicks(std::pow(10, y_.low), std::pow(10, y_.high), kMostLogTicks)
             : LinearTicks(y_.low, y_.high, kRows);
    for (const double tick : rows) {
      const double y = Y(log_ ? std::log10(tick) : tick);
      out += StrCat("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", y,
                    "\" y2=\"", y, "\"/><text class=\"tick\" text-anchor=\"end\" x=\"", kLeft - 6, "\" y=\"",
                    y + 3.5, "\">", TickLabel(tick, log_ ? 0 : Step(rows)), "</text>");
    }
    for (const double tick : columns) {
      out += StrCat("<text class=\"tick\" text-anchor=\"middle\" x=\"", X(tick), "\" y=\"", kHeight - 8,
                    "\">", TickLabel(tick, Step(columns)), "</text>");
    }
    for (const ChartLine& line : lines_) out += Line(line);
    return out + "</svg>";
  }

 private:
  static double Step(const std::vector<double>& ticks) { return ticks.size() > 1 ? ticks[1] - ticks[0] : 0; }
  std::string X(double x) const {
    return Fixed(kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight), 1);
  }
  double YValue(double y) const {
    return kTop + (y_.high - y) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  double Y(double y) const { return std::round(10 * YValue(y)) / 10; }

  std::string Line(const ChartLine& line) const {
    std::string path, dots;
    for (const auto& [x, y] : line.points) {
      path += StrCat(path.empty() ? "M" : "L", X(x), " ", Y(y));
      if (line.strong && line.points.size() <= 60) {
        dots +=
            StrCat("<circle cx=\"", X(x), "\" cy=\"", Y(y), "\" r=\"2.2\" style=\"fill:", line.color, "\"/>");
      }
    }
    return StrCat("<path class=\"", Classes(line), "\" style=\"stroke:", line.color, "\" d=\"", path, "\"/>",
                  dots);
  }

  bool log_;
  std::vector<ChartLine> lines_;
  Range x_, y_;
};

}  // namespace

std::string TickLabel(double value, double step) {
  if (value == 0) return "0";
  if (std::abs(value) >= 1000) return CountText(value);
  if (step < 1e-4) return Short(value, 3);
  // Enough digits to distinguish neighbouring ticks, the same for all of them.
  return Fixed(value, std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))));
}

std::string ChartHtml(const Chart& chart) {
  const Picture picture(chart);
  if (picture.empty()) return "";
  std::string legend;
  for (const ChartLine& line : picture.lines()) {
    if (line.label.empty()) continue;
    const double last = chart.log ? std::pow(10, line.points.back().second) : line.points.back().second;
    legend += StrCat("<span><svg class=\"sample\" viewBox=\"0 0 22 8\"><path class=\"", Classes(line),
                     "\" style=\"stroke:", line.color, "\" d=\"M0 4L22 4\"/></svg>", Escaped(line.label),
                     " <b>", std::abs(last) >= 1000 ? CountText(last) : Short(last, 4), "</b></span>");
  }
  return StrCat("<figure><h3>", Escaped(chart.title), chart.unit.empty() ? "" : " <small>",
                Escaped(chart.unit), chart.unit.empty() ? "" : "</small>", "</h3><div class=\"legend\">",
                legend, "</div>", picture.Svg(chart.title), "</figure>\n");
}

}  // namespace lattice::plot
