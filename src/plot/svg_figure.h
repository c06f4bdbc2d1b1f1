// Line charts as stand-alone SVG files, readable on light and dark backgrounds.
#ifndef LATTICE_PLOT_SVG_FIGURE_H_
#define LATTICE_PLOT_SVG_FIGURE_H_

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lattice::plot {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  // x ascending
  std::vector<std::pair<double, double>> ranges = {};  // lowest and highest y of each point, or empty
  std::optional<size_t> colour = {};                   // an index of svg_parts.h; default: by order of names
};

struct Panel {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  bool log_x = false;              // ticks at powers of two
  bool log_y = false;              // ticks at 1, 2 and 5 times powers of ten
  bool zero_to_one = false;        // y axis from 0 to 1; otherwise it fits the points
  std::vector<Curve> series = {};  // curves of the same name look the same in every panel
};

// The panels in rows of up to three, with one legend below. Names that share a colour differ by their dashes.
// Points that are not finite are left out.
std::string SvgFigure(const std::string& title, std::span<const Panel> panels);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_SVG_FIGURE_H_
