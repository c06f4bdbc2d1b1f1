#include "eval/svg_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "eval/svg_parts.h"

namespace lattice::eval {
namespace {

constexpr double kNames = 200, kPanel = 330, kNote = 64, kRow = 24, kTop = 66, kBottom = 50, kRight = 12;
// A row is off the scale when it is this many inner halves away, if there are enough rows to tell.
constexpr double kFar = 6;
constexpr size_t kFewRows = 5;

std::string Line(const std::string& classes, double x1, double y1, double x2, double y2) {
  return StrCat("<line class=\"", classes, "\" x1=\"", SvgAt(x1), "\" x2=\"", SvgAt(x2), "\" y1=\"",
                SvgAt(y1), "\" y2=\"", SvgAt(y2), "\"/>\n");
}

std::string Dot(size_t colour, double x, double y, double radius) {
  return StrCat("<circle class=\"c", colour, " dot\" cx=\"", SvgAt(x), "\" cy=\"", SvgAt(y), "\" r=\"",
                SvgAt(radius), "\"/>\n");
}

std::vector<double> Finite(const Spread& spread) {
  std::vector<double> values = spread.values;
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::sort(values.begin(), values.end());
  return values;
}

// Rows that would squeeze all others into a corner: their middle is far outside of the inner half of all.
std::vector<bool> OffScale(const RowsPanel& panel) {
  std::vector<double> middles;
  for (const Spread& row : panel.rows) {
    if (!Finite(row).empty() && std::isfinite(row.middle)) middles.push_back(row.middle);
  }
  std::vector<bool> out(panel.rows.size(), false);
  if (middles.size() < kFewRows) return out;
  std::sort(middles.begin(), middles.end());
  const double low = middles[middles.size() / 4], high = middles[middles.size() * 3 / 4];
  const double far = kFar * (high - low);
  for (size_t i = 0; i < out.size(); ++i) {
    if (Finite(panel.rows[i]).empty()) continue;
    out[i] = panel.rows[i].middle < low - far || panel.rows[i].middle > high + far;
  }
  return out;
}

Axis AxisOf(const RowsPanel& panel, const std::vector<bool>& off_scale, double from, double to) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t i = 0; i < panel.rows.size(); ++i) {
    if (off_scale[i]) continue;
    for (const double value : Finite(panel.rows[i])) low = std::min(low, value), high = std::max(high, value);
  }
  return MakeAxis(low, high, from, to, false);
}

std::string DrawArrow(const Spread& row, const Axis& x, double y, size_t colour) {
  const bool right = row.middle > x.high;
  const double tip = right ? x.to + 6 : x.from - 6, back = right ? tip - 9 : tip + 9;
  return StrCat("<path class=\"c", colour, "\" d=\"M", SvgAt(back), " ", SvgAt(y - 5), " L", SvgAt(tip), " ",
                SvgAt(y), " L", SvgAt(back), " ", SvgAt(y + 5), " Z\"/>\n");
}

std::string DrawRow(const Spread& row, const Axis& x, double y, size_t colour) {
  const std::vector<double> values = Finite(row);
  std::string out;
  if (values.size() > 1) {
    out += Line(StrCat("c", colour, " range"), x(values.front()), y, x(values.back()), y);
    for (const double value : values)
      out += Line(StrCat("c", colour, " range"), x(value), y - 4, x(value), y + 4);
  }
  if (!values.empty() && std::isfinite(row.middle)) out += Dot(colour, x(row.middle), y, 5);
  return out;
}

std::string DrawPanel(const RowsPanel& panel, double left, double bottom) {
  const std::vector<bool> off_scale = OffScale(panel);
  const Axis x = AxisOf(panel, off_scale, left + 10, left + kPanel - kNote);
  std::string out = SvgText(left, kTop - 14, "heading", panel.title);
  for (const double tick : x.ticks) {
    out += Line("grid", x(tick), kTop, x(tick), bottom);
    out += SvgText(x(tick), bottom + 16, "tick middle", SvgNumber(tick));
  }
  out += SvgText((x.from + x.to) / 2, bottom + 36, "tick middle", panel.x_label);
  for (size_t i = 0; i < panel.rows.size(); ++i) {
    const double y = kTop + kRow * (static_cast<double>(i) + 0.5);
    out += off_scale[i] ? DrawArrow(panel.rows[i], x, y, i % kSvgColours)
                        : DrawRow(panel.rows[i], x, y, i % kSvgColours);
    out += SvgText(x.to + kNote - 6, y + 4, "tick end", panel.rows[i].note);
  }
  return out;
}

}  // namespace

std::string SvgRows(const std::string& title, std::span<const std::string> names,
                    std::span<const RowsPanel> panels) {
  const double bottom = kTop + kRow * static_cast<double>(names.size());
  const double width = kNames + kPanel * static_cast<double>(panels.size()) + kRight;
  std::string out = SvgStart(title, width, bottom + kBottom);
  for (size_t i = 0; i < names.size(); ++i)
    out += SvgText(kNames - 10, kTop + kRow * (static_cast<double>(i) + 0.5) + 4, "tick end", names[i]);
  for (size_t p = 0; p < panels.size(); ++p) {
    Check(panels[p].rows.size() == names.size(), "[figure] a panel has ", panels[p].rows.size(), " rows for ",
          names.size(), " names");
    out += DrawPanel(panels[p], kNames + kPanel * static_cast<double>(p), bottom);
  }
  return out + "</svg>\n";
}

}  // namespace lattice::eval
