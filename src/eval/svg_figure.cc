#include "eval/svg_figure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "base/round_step.h"
#include "text/markup.h"

namespace lattice::eval {
namespace {

using text::Escaped;

constexpr double kWidth = 360, kHeight = 260, kLeft = 56, kRight = 14, kTop = 34, kBottom = 46;
constexpr double kTitle = 34, kLegendRow = 20;
constexpr size_t kColumns = 3;
constexpr size_t kColours = 8;

std::string Number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e9;
  char text[32];
  std::snprintf(text, sizeof(text), whole ? "%.0f" : "%.5g", value);
  return text;
}

std::string At(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string Text(double x, double y, const std::string& classes, const std::string& text) {
  return StrCat("<text x=\"", At(x), "\" y=\"", At(y), "\" class=\"", classes, "\">", Escaped(text),
                "</text>\n");
}

struct Axis {
  double low, high, from, to;  // values and where they are drawn
  bool log;
  std::vector<double> ticks;

  double operator()(double value) const {
    const double a = log ? std::log2(low) : low, b = log ? std::log2(high) : high;
    return from + (to - from) * ((log ? std::log2(value) : value) - a) / (b - a);
  }
};

// About four round steps.
void AddLinearTicks(Axis& axis) {
  const double step = RoundStep((axis.high - axis.low) / 4);
  axis.low = std::floor(axis.low / step + 1e-9) * step;
  axis.high = std::ceil(axis.high / step - 1e-9) * step;
  for (double tick = axis.low; tick <= axis.high + step / 2; tick += step)
    axis.ticks.push_back(std::abs(tick) < step / 1e6 ? 0 : tick);
}

void AddLogTicks(Axis& axis) {
  const double first = std::floor(std::log2(axis.low) + 1e-9), last = std::ceil(std::log2(axis.high) - 1e-9);
  const double step = std::max(1.0, std::ceil((last - first) / 7));
  for (double power = first; power <= last + 1e-9; power += step) axis.ticks.push_back(std::exp2(power));
}

Axis MakeAxis(double low, double high, double from, double to, bool log) {
  if (!(low <= high)) low = log ? 1 : 0, high = log ? 2 : 1;
  if (low == high) {
    low = log ? low / 2 : low - std::max(0.5, std::abs(low) * 0.05);
    high = log ? high * 2 : high + std::max(0.5, std::abs(high) * 0.05);
  }
  Axis axis{low, high, from, to, log, {}};
  if (log) {
    AddLogTicks(axis);
  } else {
    AddLinearTicks(axis);
  }
  return axis;
}

bool Drawable(const Panel& panel, const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second) && (!panel.log_x || point.first > 0);
}

std::string DrawSeries(const Panel& panel, const Series& series, const Axis& x, const Axis& y,
                       size_t colour) {
  std::string path, dots;
  for (const auto& point : series.points) {
    if (!Drawable(panel, point)) continue;
    path += StrCat(path.empty() ? "M" : " L", At(x(point.first)), " ", At(y(point.second)));
    if (series.points.size() <= 24) {
      dots += StrCat("<circle class=\"c", colour, " dot\" cx=\"", At(x(point.first)), "\" cy=\"",
                     At(y(point.second)), "\" r=\"3\"><title>", Escaped(series.name), ": ",
                     Number(point.first), ", ", Number(point.second), "</title></circle>\n");
    }
  }
  if (path.empty()) return "";
  return StrCat("<path class=\"c", colour, " line\" d=\"", path, "\"/>\n", dots);
}

std::string DrawPanel(const Panel& panel, double left, double top, const std::vector<std::string>& names) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double x_low = kInfinity, x_high = -kInfinity, y_low = kInfinity, y_high = -kInfinity;
  for (const Series& series : panel.series) {
    for (const auto& point : series.points) {
      if (!Drawable(panel, point)) continue;
      x_low = std::min(x_low, point.first), x_high = std::max(x_high, point.first);
      y_low = std::min(y_low, point.second), y_high = std::max(y_high, point.second);
    }
  }
  if (panel.zero_to_one) y_low = 0, y_high = 1;
  const Axis x = MakeAxis(x_low, x_high, left + kLeft, left + kWidth - kRight, panel.log_x);
  const Axis y = MakeAxis(y_low, y_high, top + kHeight - kBottom, top + kTop, false);
  std::string out = Text(left + kLeft, top + 22, "heading", panel.title);
  for (const double tick : y.ticks) {
    out += StrCat("<line class=\"grid\" x1=\"", At(x.from), "\" x2=\"", At(x.to), "\" y1=\"", At(y(tick)),
                  "\" y2=\"", At(y(tick)), "\"/>\n");
    out += Text(x.from - 6, y(tick) + 4, "tick end", Number(tick));
  }
  for (const double tick : x.ticks) {
    if (x(tick) < x.from - 0.5 || x(tick) > x.to + 0.5) continue;
    out += StrCat("<line class=\"axis\" x1=\"", At(x(tick)), "\" x2=\"", At(x(tick)), "\" y1=\"", At(y.from),
                  "\" y2=\"", At(y.from + 4), "\"/>\n");
    out += Text(x(tick), y.from + 17, "tick middle", Number(tick));
  }
  out += StrCat("<line class=\"axis\" x1=\"", At(x.from), "\" x2=\"", At(x.to), "\" y1=\"", At(y.from),
                "\" y2=\"", At(y.from), "\"/>\n");
  out += Text((x.from + x.to) / 2, top + kHeight - 10, "tick middle", panel.x_label);
  const double middle = (y.from + y.to) / 2;
  out += StrCat("<text class=\"tick middle\" transform=\"translate(", At(left + 13), " ", At(middle),
                ") rotate(-90)\">", Escaped(panel.y_label), "</text>\n");
  for (const Series& series : panel.series) {
    const auto at = std::find(names.begin(), names.end(), series.name) - names.begin();
    out += DrawSeries(panel, series, x, y, static_cast<size_t>(at) % kColours);
  }
  return out;
}

std::string Style() {
  // Colours that differ in lightness too; validated on both grounds by eye.
  constexpr const char* kLight[] = {"#0b62c4", "#c2410c", "#0f7b5f", "#9333a8",
                                    "#a16207", "#be185d", "#4b5563", "#0e7490"};
  constexpr const char* kDark[] = {"#6cb2ff", "#ff9b62", "#4fd1a5", "#d59bf0",
                                   "#f0c04a", "#ff8fbf", "#b6bfcc", "#56d4e8"};
  std::string light, dark;
  for (size_t i = 0; i < kColours; ++i) {
    light += StrCat(".c", i, "{stroke:", kLight[i], ";fill:", kLight[i], "}");
    dark += StrCat(".c", i, "{stroke:", kDark[i], ";fill:", kDark[i], "}");
  }
  return StrCat(
      "<style>text{font-family:system-ui,sans-serif;fill:#1f2328}.ground{fill:#fff}.title{font-size:15px;"
      "font-weight:600}.heading{font-size:13px;font-weight:600}.tick{font-size:11px;fill:#57606a}"
      ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#d8dee4}.axis{stroke:#57606a}",
      light, "path.line{fill:none;stroke-width:2;stroke-linejoin:round}",
      "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}.tick{fill:#9198a1}"
      ".grid{stroke:#30363d}.axis{stroke:#9198a1}",
      dark, "path.line{fill:none}}</style>\n");
}

}  // namespace

std::string SvgFigure(const std::string& title, std::span<const Panel> panels) {
  std::vector<std::string> names;
  for (const Panel& panel : panels) {
    for (const Series& series : panel.series) {
      if (std::find(names.begin(), names.end(), series.name) == names.end()) names.push_back(series.name);
    }
  }
  const size_t columns = std::min(std::max<size_t>(1, panels.size()), kColumns);
  const size_t rows = (panels.size() + columns - 1) / columns;
  const size_t per_row = 2 * columns, legend_rows = (names.size() + per_row - 1) / per_row;
  const double width = kWidth * static_cast<double>(columns);
  const double legend = kTitle + kHeight * static_cast<double>(rows);
  const double height = legend + kLegendRow * static_cast<double>(legend_rows) + 12;
  std::string out = StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", At(width), " ",
                           At(height), "\" width=\"", At(width), "\" height=\"", At(height),
                           "\" role=\"img\">\n<title>", Escaped(title), "</title>\n", Style(),
                           "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
  out += Text(16, 24, "title", title);
  for (size_t i = 0; i < panels.size(); ++i) {
    out += DrawPanel(panels[i], kWidth * static_cast<double>(i % columns),
                     kTitle + kHeight * static_cast<double>(i / columns), names);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const double x = kLeft + kWidth / 2 * static_cast<double>(i % per_row);
    const double y = legend + kLegendRow * (static_cast<double>(i / per_row) + 0.6);
    out += StrCat("<rect class=\"c", i % kColours, "\" x=\"", At(x), "\" y=\"", At(y - 5),
                  "\" width=\"16\" height=\"3\"/>\n");
    out += Text(x + 22, y, "tick", names[i]);
  }
  return out + "</svg>\n";
}

}  // namespace lattice::eval
