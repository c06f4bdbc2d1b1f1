// Building blocks of the SVG figures: numbers, text, axes, and one style with a light and a dark variant.
#ifndef LATTICE_PLOT_SVG_PARTS_H_
#define LATTICE_PLOT_SVG_PARTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::plot {

// The number of CSS classes c0, c1, ... (colours of lines and dots) and d0, d1, ... (dash patterns; d0 is
// solid).
inline constexpr size_t kSvgColours = 12;
inline constexpr size_t kSvgDashes = 4;

// The colour of a memory, the same in every figure: by its index in kernels::MemoryNames().
size_t SvgColourOf(std::string_view mixer);
// Colours for other things, in an order in which the first ones differ most.
size_t SvgColourAt(size_t place);

// Formats a value for readers, and a coordinate.
std::string SvgNumber(double value);
std::string SvgAt(double value);

// A text element. Classes: title, heading, tick; middle and end set its alignment at x.
std::string SvgText(double x, double y, const std::string& classes, const std::string& text);

// How values are spread over an axis, and which of them get ticks.
enum class Scale { kLinear, kPowersOfTwo, kDecades };

// Maps values in [low, high] to coordinates in [from, to].
struct Axis {
  double low, high, from, to;
  Scale scale;
  std::vector<double> ticks;

  double operator()(double value) const;
};

// An axis widened to round ticks; an axis of decades is not widened.
Axis MakeAxis(double low, double high, double from, double to, Scale scale);

// The opening tag with title, style and background.
std::string SvgStart(const std::string& title, double width, double height);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_SVG_PARTS_H_
