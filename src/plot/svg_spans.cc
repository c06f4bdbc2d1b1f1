#include "plot/svg_spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "plot/svg_parts.h"

namespace lattice::plot {
namespace {

constexpr double kLeft = 16, kNames = 150, kPlot = 720, kRight = 24, kTitle = 36, kKey = 22, kRow = 30,
                 kBar = 20, kBottom = 50;
constexpr double kLetter = 6.2;    // approximate width of one in the key
constexpr double kThinnest = 0.5;  // so that short spans can be seen

// The names in the order of their first appearance, which is that of their colours.
std::vector<std::string> NamesOf(std::span<const TimeSpan> spans) {
  std::vector<std::string> names;
  for (const TimeSpan& span : spans) {
    if (std::find(names.begin(), names.end(), span.name) == names.end()) names.push_back(span.name);
  }
  return names;
}

size_t PlaceOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string Bar(size_t place, double x, double y, double width, double height) {
  return StrCat("<rect class=\"c", SvgColourAt(place), "\" style=\"stroke:none\" x=\"", SvgAt(x), "\" y=\"",
                SvgAt(y), "\" width=\"", SvgAt(width), "\" height=\"", SvgAt(height), "\"/>\n");
}

// The names with their colours, in as many lines as they need; `bottom` is moved behind the last.
std::string Key(const std::vector<std::string>& names, double& bottom) {
  std::string out;
  double x = kLeft;
  for (size_t i = 0; i < names.size(); ++i) {
    const double width = 32 + kLetter * static_cast<double>(names[i].size());
    if (x + width > kNames + kPlot) {
      x = kLeft;
      bottom += kKey;
    }
    out += Bar(i, x, bottom, 10, 10) + SvgText(x + 15, bottom + 9, "tick", names[i]);
    x += width;
  }
  bottom += kKey;
  return out;
}

Axis AxisOf(std::span<const TimeSpan> spans, size_t rows) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const TimeSpan& span : spans) {
    Check(std::isfinite(span.from) && std::isfinite(span.to) && span.from <= span.to,
          "[figure] a span goes from ", span.from, " to ", span.to);
    Check(span.row >= 0 && span.row < static_cast<int64_t>(rows), "[figure] a span is in row ", span.row,
          " of ", rows);
    low = std::min(low, span.from), high = std::max(high, span.to);
  }
  return MakeAxis(low, high, kNames, kNames + kPlot, Scale::kLinear);
}

}  // namespace

std::string SvgSpans(const std::string& title, const std::string& x_label, std::span<const std::string> rows,
                     std::span<const TimeSpan> spans) {
  const Axis x = AxisOf(spans, rows.size());
  const std::vector<std::string> names = NamesOf(spans);
  double top = kTitle;
  const std::string key = Key(names, top);
  const double bottom = top + kRow * static_cast<double>(rows.size());
  std::string out = SvgStart(title, kNames + kPlot + kRight, bottom + kBottom) + key;
  for (const double tick : x.ticks) {
    out += StrCat("<line class=\"grid\" x1=\"", SvgAt(x(tick)), "\" x2=\"", SvgAt(x(tick)), "\" y1=\"",
                  SvgAt(top), "\" y2=\"", SvgAt(bottom), "\"/>\n");
    out += SvgText(x(tick), bottom + 16, "tick middle", SvgNumber(tick));
  }
  out += SvgText(kNames + kPlot / 2, bottom + 36, "tick middle", x_label);
  for (size_t row = 0; row < rows.size(); ++row)
    out += SvgText(kNames - 10, top + kRow * (static_cast<double>(row) + 0.5) + 4, "tick end", rows[row]);
  for (const TimeSpan& span : spans) {
    const double y = top + kRow * static_cast<double>(span.row) + (kRow - kBar) / 2;
    out +=
        Bar(PlaceOf(names, span.name), x(span.from), y, std::max(kThinnest, x(span.to) - x(span.from)), kBar);
  }
  return out + "</svg>\n";
}

}  // namespace lattice::plot
