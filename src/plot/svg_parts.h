// What the figures are drawn with: numbers, text, axes and one style for light and dark ground.
#ifndef LATTICE_PLOT_SVG_PARTS_H_
#define LATTICE_PLOT_SVG_PARTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::plot {

// The classes c0, c1, ... of lines and dots; d0, d1, ... are ways to dash a line, d0 none.
inline constexpr size_t kSvgColours = 12;
inline constexpr size_t kSvgDashes = 4;

// The colour of a memory, the same in every figure: that of its place in kernels::MemoryNames().
size_t SvgColourOf(std::string_view mixer);
// The colours for other things, in an order in which the first ones differ most.
size_t SvgColourAt(size_t place);

// A value as people read it, and a coordinate.
std::string SvgNumber(double value);
std::string SvgAt(double value);

// Classes: title, heading, tick; middle and end place the text around x.
std::string SvgText(double x, double y, const std::string& classes, const std::string& text);

// How values are spread over an axis, and which of them get ticks.
enum class Scale { kLinear, kPowersOfTwo, kDecades };

// Values from `low` to `high` drawn from `from` to `to`.
struct Axis {
  double low, high, from, to;
  Scale scale;
  std::vector<double> ticks;

  double operator()(double value) const;
};

// Widened to round ticks; an axis of decades reaches just as far as its values.
Axis MakeAxis(double low, double high, double from, double to, Scale scale);

// The opening tag with title, style and ground.
std::string SvgStart(const std::string& title, double width, double height);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_SVG_PARTS_H_
