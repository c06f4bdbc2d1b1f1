// Lays out panels of line charts in a stand-alone SVG file.
#include "plot/svg_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "plot/svg_parts.h"
#include "text/markup.h"

namespace lattice::plot {
namespace {

using text::Escaped;

constexpr double kWidth = 360, kHeight = 260, kLeft = 56, kRight = 26, kTop = 34, kBottom = 46;
constexpr double kTitle = 34, kLegendRow = 20;
constexpr size_t kColumns = 3;
constexpr size_t kLongName = 24;  // characters of a name that half a panel has room for

// The style of all curves of a name, the same in every panel.
struct Look {
  std::string name;
  size_t colour = 0, dash = 0;
};

std::vector<Look> LooksOf(std::span<const Panel> panels) {
  std::vector<Look> looks;
  for (const Panel& panel : panels) {
    for (const Curve& series : panel.series) {
      if (std::any_of(looks.begin(), looks.end(), [&](const Look& look) { return look.name == series.name; }))
        continue;
      const size_t colour = series.colour ? *series.colour : SvgColourAt(looks.size());
      const auto before =
          std::count_if(looks.begin(), looks.end(), [&](const Look& look) { return look.colour == colour; });
      looks.push_back({series.name, colour, static_cast<size_t>(before) % kSvgDashes});
    }
  }
  return looks;
}

bool Drawable(const Panel& panel, const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second) && (!panel.log_x || point.first > 0) &&
         (!panel.log_y || point.second > 0);
}

std::string DrawSeries(const Panel& panel, const Curve& series, const Axis& x, const Axis& y,
                       const Look& look) {
  std::string path, dots, ranges;
  for (size_t i = 0; i < series.points.size(); ++i) {
    const auto& point = series.points[i];
    if (!Drawable(panel, point)) continue;
    if (i < series.ranges.size() && std::isfinite(series.ranges[i].first)) {
      ranges += StrCat("<line class=\"c", look.colour, " range\" x1=\"", SvgAt(x(point.first)), "\" x2=\"",
                       SvgAt(x(point.first)), "\" y1=\"", SvgAt(y(series.ranges[i].first)), "\" y2=\"",
                       SvgAt(y(series.ranges[i].second)), "\"/>\n");
    }
    path += StrCat(path.empty() ? "M" : " L", SvgAt(x(point.first)), " ", SvgAt(y(point.second)));
    if (series.points.size() <= 24) {
      dots += StrCat("<circle class=\"c", look.colour, " dot\" cx=\"", SvgAt(x(point.first)), "\" cy=\"",
                     SvgAt(y(point.second)), "\" r=\"3\"><title>", Escaped(series.name), ": ",
                     SvgNumber(point.first), ", ", SvgNumber(point.second), "</title></circle>\n");
    }
  }
  if (path.empty()) return "";
  return StrCat("<path class=\"c", look.colour, " d", look.dash, " line\" d=\"", path, "\"/>\n", ranges,
                dots);
}

std::string DrawPanel(const Panel& panel, double left, double top, std::span<const Look> looks) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double x_low = kInfinity, x_high = -kInfinity, y_low = kInfinity, y_high = -kInfinity;
  for (const Curve& series : panel.series) {
    for (const auto& point : series.points) {
      if (!Drawable(panel, point)) continue;
      x_low = std::min(x_low, point.first), x_high = std::max(x_high, point.first);
      y_low = std::min(y_low, point.second), y_high = std::max(y_high, point.second);
    }
    for (const auto& [low, high] : series.ranges) {
      if (std::isfinite(low)) y_low = std::min(y_low, low), y_high = std::max(y_high, high);
    }
  }
  if (panel.zero_to_one) y_low = 0, y_high = 1;
  const Axis x = MakeAxis(x_low, x_high, left + kLeft, left + kWidth - kRight,
                          panel.log_x ? Scale::kPowersOfTwo : Scale::kLinear);
  const Axis y = MakeAxis(y_low, y_high, top + kHeight - kBottom, top + kTop,
                          panel.log_y ? Scale::kDecades : Scale::kLinear);
  std::string out = SvgText(left + kLeft, top + 22, "heading", panel.title);
  for (const double tick : y.ticks) {
    out += StrCat("<line class=\"grid\" x1=\"", SvgAt(x.from), "\" x2=\"", SvgAt(x.to), "\" y1=\"",
                  SvgAt(y(tick)), "\" y2=\"", SvgAt(y(tick)), "\"/>\n");
    out += SvgText(x.from - 6, y(tick) + 4, "tick end", SvgNumber(tick));
  }
  for (const double tick : x.ticks) {
    if (x(tick) < x.from - 0.5 || x(tick) > x.to + 0.5) continue;
    out += StrCat("<line class=\"axis\" x1=\"", SvgAt(x(tick)), "\" x2=\"", SvgAt(x(tick)), "\" y1=\"",
                  SvgAt(y.from), "\" y2=\"", SvgAt(y.from + 4), "\"/>\n");
    out += SvgText(x(tick), y.from + 17, "tick middle", SvgNumber(tick));
  }
  out += StrCat("<line class=\"axis\" x1=\"", SvgAt(x.from), "\" x2=\"", SvgAt(x.to), "\" y1=\"",
                SvgAt(y.from), "\" y2=\"", SvgAt(y.from), "\"/>\n");
  out += SvgText((x.from + x.to) / 2, top + kHeight - 10, "tick middle", panel.x_label);
  const double middle = (y.from + y.to) / 2;
  out += StrCat("<text class=\"tick middle\" transform=\"translate(", SvgAt(left + 13), " ", SvgAt(middle),
                ") rotate(-90)\">", Escaped(panel.y_label), "</text>\n");
  for (const Curve& series : panel.series) {
    const auto at =
        std::find_if(looks.begin(), looks.end(), [&](const Look& look) { return look.name == series.name; });
    out += DrawSeries(panel, series, x, y, *at);
  }
  return out;
}

}  // namespace

std::string SvgFigure(const std::string& title, std::span<const Panel> panels) {
  const std::vector<Look> looks = LooksOf(panels);
  const size_t columns = std::min(std::max<size_t>(1, panels.size()), kColumns);
  const size_t rows = (panels.size() + columns - 1) / columns;
  // Two names fit under a panel, or one long one.
  const bool long_names =
      std::any_of(looks.begin(), looks.end(), [](const Look& look) { return look.name.size() > kLongName; });
  const size_t per_panel = long_names ? 1 : 2;
  const size_t per_row = per_panel * columns, legend_rows = (looks.size() + per_row - 1) / per_row;
  const double width = kWidth * static_cast<double>(columns);
  const double legend = kTitle + kHeight * static_cast<double>(rows);
  const double height = legend + kLegendRow * static_cast<double>(legend_rows) + 12;
  std::string out = SvgStart(title, width, height);
  for (size_t i = 0; i < panels.size(); ++i) {
    out += DrawPanel(panels[i], kWidth * static_cast<double>(i % columns),
                     kTitle + kHeight * static_cast<double>(i / columns), looks);
  }
  for (size_t i = 0; i < looks.size(); ++i) {
    const double x = kLeft + kWidth / static_cast<double>(per_panel) * static_cast<double>(i % per_row);
    const double y = legend + kLegendRow * (static_cast<double>(i / per_row) + 0.6);
    out += StrCat("<path class=\"c", looks[i].colour, " d", looks[i].dash, " line\" d=\"M", SvgAt(x), " ",
                  SvgAt(y - 4), " L", SvgAt(x + 24), " ", SvgAt(y - 4), "\"/>\n");
    out += SvgText(x + 30, y, "tick", looks[i].name);
  }
  return out + "</svg>\n";
}

}  // namespace lattice::plot
