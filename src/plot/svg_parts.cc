// The building blocks of the SVG figures: colours, axes, ticks and text.
#include "plot/svg_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/ticks.h"
#include "kernels/registry.h"
#include "text/markup.h"

namespace lattice::plot {
namespace {

using text::Escaped;

constexpr size_t kMostDecadeTicks = 9;

// Widens the axis to about four round steps.
void AddLinearTicks(Axis& axis) {
  constexpr int kParts = 4;
  const double step = RoundStep((axis.high - axis.low) / kParts);
  axis.low = std::floor(axis.low / step + 1e-9) * step;
  axis.high = std::ceil(axis.high / step - 1e-9) * step;
  axis.ticks = LinearTicks(axis.low, axis.high, static_cast<int>(std::lround((axis.high - axis.low) / step)));
}

void AddLogTicks(Axis& axis) {
  const double first = std::floor(std::log2(axis.low) + 1e-9), last = std::ceil(std::log2(axis.high) - 1e-9);
  const double step = std::max(1.0, std::ceil((last - first) / 7));
  for (double power = first; power <= last + 1e-9; power += step) axis.ticks.push_back(std::exp2(power));
}

std::string Style() {
  // The colours also differ in lightness; checked by eye on both backgrounds.
  constexpr std::array<const char*, kSvgColours> kLight = {"#0b62c4", "#0e7490", "#5b4bd6", "#64748b",
                                                           "#a16207", "#4d7c0f", "#c2410c", "#9333a8",
                                                           "#b45309", "#0f7b5f", "#be185d", "#1f2937"};
  constexpr std::array<const char*, kSvgColours> kDark = {"#6cb2ff", "#56d4e8", "#a99dff", "#94a3b8",
                                                          "#f0c04a", "#a3d65c", "#ff9b62", "#d59bf0",
                                                          "#e8a04f", "#4fd1a5", "#ff8fbf", "#d7dde5"};
  std::string light, dark;
  for (size_t i = 0; i < kSvgColours; ++i) {
    light += StrCat(".c", i, "{stroke:", kLight[i], ";fill:", kLight[i], "}");
    dark += StrCat(".c", i, "{stroke:", kDark[i], ";fill:", kDark[i], "}");
  }
  return StrCat(
      "<style>text{font-family:system-ui,sans-serif;fill:#1f2328}.ground{fill:#fff}.title{font-size:15px;"
      "font-weight:600}.heading{font-size:13px;font-weight:600}.tick{font-size:11px;fill:#57606a}"
      ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#d8dee4}.axis{stroke:#57606a}",
      light,
      "path.line{fill:none;stroke-width:2;stroke-linejoin:round}line.range{stroke-width:1.5;stroke-opacity:."
      "6}.ring{fill:none;stroke-width:1.6}.d1{stroke-dasharray:7 4}.d2{stroke-dasharray:2 3}"
      ".d3{stroke-dasharray:9 3 2 3}",
      "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}.tick{fill:#9198a1}"
      ".grid{stroke:#30363d}.axis{stroke:#9198a1}",
      dark, "path.line,.ring{fill:none}}</style>\n");
}

}  // namespace

size_t SvgColourOf(std::string_view mixer) {
  const auto names = kernels::MemoryNames();
  const auto at = std::find(names.begin(), names.end(), mixer);
  Check(at != names.end(), "[figure] there is no memory \"", mixer, "\"");
  return static_cast<size_t>(at - names.begin()) % kSvgColours;
}

size_t SvgColourAt(size_t place) {
  constexpr std::array<size_t, kSvgColours> kOrder = {0, 6, 9, 7, 4, 10, 3, 1, 2, 5, 8, 11};
  return kOrder[place % kSvgColours];
}

std::string SvgNumber(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e9;
  const bool thousands = whole && value != 0 && std::fmod(value, 1000) == 0;
  char text[32];
  std::snprintf(text, sizeof(text),
                thousands ? "%.0fk"
                : whole   ? "%.0f"
                          : "%.5g",
                thousands ? value / 1000 : value);
  return text;
}

std::string SvgAt(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string SvgText(double x, double y, const std::string& classes, const std::string& text) {
  return StrCat("<text x=\"", SvgAt(x), "\" y=\"", SvgAt(y), "\" class=\"", classes, "\">", Escaped(text),
                "</text>\n");
}

double Axis::operator()(double value) const {
  const bool log = scale != Scale::kLinear;
  const double a = log ? std::log2(low) : low, b = log ? std::log2(high) : high;
  return from + (to - from) * ((log ? std::log2(value) : value) - a) / (b - a);
}

Axis MakeAxis(double low, double high, double from, double to, Scale scale) {
  const bool log = scale != Scale::kLinear;
  if (!(low <= high)) low = log ? 1 : 0, high = log ? 2 : 1;
  if (low == high) {
    low = log ? low / 2 : low - std::max(0.5, std::abs(low) * 0.05);
    high = log ? high * 2 : high + std::max(0.5, std::abs(high) * 0.05);
  }
  Axis axis{low, high, from, to, scale, {}};
  switch (scale) {
    case Scale::kLinear:
      AddLinearTicks(axis);
      break;
    case Scale::kPowersOfTwo:
      AddLogTicks(axis);
      break;
    case Scale::kDecades:
      axis.ticks = LogTicks(low, high, kMostDecadeTicks);
      break;
  }
  return axis;
}

std::string SvgStart(const std::string& title, double width, double height) {
  return StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", SvgAt(width), " ", SvgAt(height),
                "\" width=\"", SvgAt(width), "\" height=\"", SvgAt(height), "\" role=\"img\">\n<title>",
                Escaped(title), "</title>\n", Style(),
                "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", SvgText(16, 24, "title", title));
}

}  // namespace lattice::plot
