// Draws one row of dots per name and panel, with outliers as arrows at the edge.
#include "plot/svg_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "plot/svg_parts.h"

namespace lattice::plot {
namespace {

constexpr double kNames = 200, kPanel = 340, kNote = 64, kRow = 24, kTitle = 36, kKey = 20, kHeading = 30,
                 kBottom = 50, kRight = 12;
constexpr double kNoteWidth = 44;  // approximate width of a value
constexpr size_t kColumns = 2;
// A row is off the scale when it is this many interquartile ranges away, if there are at least kFewRows.
constexpr double kFar = 6;
constexpr size_t kFewRows = 5;
// The axis is logarithmic where the largest value is so many times the smallest: runs that diverged beside others.
constexpr double kWide = 50;

std::string Line(const std::string& classes, double x1, double y1, double x2, double y2) {
  return StrCat("<line class=\"", classes, "\" x1=\"", SvgAt(x1), "\" x2=\"", SvgAt(x2), "\" y1=\"",
                SvgAt(y1), "\" y2=\"", SvgAt(y2), "\"/>\n");
}

std::string Circle(size_t colour, const char* kind, double x, double y) {
  return StrCat("<circle class=\"c", colour, " ", kind, "\" cx=\"", SvgAt(x), "\" cy=\"", SvgAt(y),
                "\" r=\"5\"/>\n");
}

std::vector<double> Finite(const Spread& spread) {
  std::vector<double> values = spread.values;
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::sort(values.begin(), values.end());
  return values;
}

// The outliers, which would squeeze all other rows into a corner: their middle is far outside of the
// interquartile range.
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
    std::vector<double> values = off_scale[i] ? std::vector<double>() : Finite(panel.rows[i]);
    if (panel.rows[i].reference) values.push_back(*panel.rows[i].reference);
    for (const double value : values) low = std::min(low, value), high = std::max(high, value);
  }
  if (panel.zero_to_one) low = 0, high = 1;
  if (low > 0 && high > kWide * low) return MakeAxis(low / 1.2, high * 1.2, from, to, Scale::kDecades);
  return MakeAxis(low, high, from, to, Scale::kLinear);
}

// A note that starts or ends at `x`; it covers [from, to].
struct Note {
  double from, to;
  std::string svg;

  bool Covers(double x) const { return x > from - 8 && x < to + 8; }
};

Note NoteBehind(double x, double y, const std::string& text) {
  return {x, x + kNoteWidth, SvgText(x, y + 4, "tick", text)};
}

Note NoteBefore(double x, double y, const std::string& text) {
  return {x - kNoteWidth, x, SvgText(x, y + 4, "tick end", text)};
}

// The note is inside the panel, unless the ring is there.
std::string DrawArrow(const Spread& row, const Axis& x, double y, size_t colour) {
  const bool right = row.middle > x.high;
  const double tip = right ? x.to + 6 : x.from - 6, back = right ? tip - 9 : tip + 9;
  std::string out = StrCat("<path class=\"c", colour, "\" d=\"M", SvgAt(back), " ", SvgAt(y - 5), " L",
                           SvgAt(tip), " ", SvgAt(y), " L", SvgAt(back), " ", SvgAt(y + 5), " Z\"/>\n");
  Note note = right ? NoteBefore(back - 6, y, row.note) : NoteBehind(back + 6, y, row.note);
  if (row.reference) {
    const double ring = x(*row.reference);
    out += Circle(colour, "ring", ring, y);
    if (right && note.Covers(ring)) note = NoteBehind(tip + 4, y, row.note);
  }
  return out + note.svg;
}

// The note is close to the dots of its row, so that it is not taken for a part of the next panel: to their
// right, or to their left where the ring is in the way.
std::string DrawRow(const Spread& row, const Axis& x, double y, size_t colour) {
  const std::vector<double> values = Finite(row);
  std::string out;
  if (values.size() > 1) {
    out += Line(StrCat("c", colour, " range"), x(values.front()), y, x(values.back()), y);
    for (const double value : values)
      out += Line(StrCat("c", colour, " range"), x(value), y - 4, x(value), y + 4);
  }
  double first = x.from, last = x.from;
  if (!values.empty() && std::isfinite(row.middle)) {
    out += Circle(colour, "dot", x(row.middle), y);
    first = std::min(x(values.front()), x(row.middle)) - 5;
    last = std::max(x(values.back()), x(row.middle)) + 5;
  }
  Note note = NoteBehind(last + 6, y, row.note);
  if (row.reference) {
    const double ring = x(*row.reference);
    out += Circle(colour, "ring", ring, y);
    if (note.Covers(ring)) note = NoteBefore(first - 6, y, row.note);
  }
  return out + note.svg;
}

std::string DrawPanel(const RowsPanel& panel, std::span<const RowName> names, double left, double top,
                      double bottom) {
  const std::vector<bool> off_scale = OffScale(panel);
  const Axis x = AxisOf(panel, off_scale, left + 10, left + kPanel - kNote);
  std::string out = SvgText(left + 10, top - 12, "heading", panel.title);
  for (const double tick : x.ticks) {
    out += Line("grid", x(tick), top, x(tick), bottom);
    out += SvgText(x(tick), bottom + 16, "tick middle", SvgNumber(tick));
  }
  out += Line("axis", x.from, bottom, x.to, bottom);
  out += SvgText((x.from + x.to) / 2, bottom + 36, "tick middle", panel.x_label);
  for (size_t i = 0; i < panel.rows.size(); ++i) {
    const double y = top + kRow * (static_cast<double>(i) + 0.5);
    // The reference may have widened the axis as far as the row.
    const bool outside = panel.rows[i].middle < x.low || panel.rows[i].middle > x.high;
    out += off_scale[i] && outside ? DrawArrow(panel.rows[i], x, y, names[i].colour)
                                   : DrawRow(panel.rows[i], x, y, names[i].colour);
  }
  return out;
}

}  // namespace

std::string SvgRows(const std::string& title, const std::string& key, std::span<const RowName> names,
                    std::span<const RowsPanel> panels) {
  const double rows = kRow * static_cast<double>(names.size());
  const double first = kTitle + (key.empty() ? 0 : kKey), line = kHeading + rows + kBottom;
  const size_t columns = std::min(panels.size(), kColumns), lines = (panels.size() + kColumns - 1) / kColumns;
  const double width = kNames + kPanel * static_cast<double>(columns) + kRight;
  std::string out = SvgStart(title, width, first + line * static_cast<double>(lines));
  if (!key.empty()) out += SvgText(16, kTitle + 8, "tick", key);
  for (size_t p = 0; p < panels.size(); ++p) {
    Check(panels[p].rows.size() == names.size(), "[figure] a panel has ", panels[p].rows.size(), " rows for ",
          names.size(), " names");
    const double top = first + line * static_cast<double>(p / kColumns) + kHeading;
    out += DrawPanel(panels[p], names, kNames + kPanel * static_cast<double>(p % kColumns), top, top + rows);
    if (p % kColumns != 0) continue;
    for (size_t i = 0; i < names.size(); ++i)
      out += SvgText(kNames - 10, top + kRow * (static_cast<double>(i) + 0.5) + 4, "tick end", names[i].text);
  }
  return out + "</svg>\n";
}

}  // namespace lattice::plot
