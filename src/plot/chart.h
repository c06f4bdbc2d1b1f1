// Line charts as inline SVG, coloured by CSS so that a page can be light or dark.
#ifndef LATTICE_PLOT_CHART_H_
#define LATTICE_PLOT_CHART_H_

#include <string>
#include <utility>
#include <vector>

namespace lattice::plot {

struct ChartLine {
  std::string label;                              // in the legend; empty: none
  std::string color;                              // CSS, such as var(--c0)
  std::vector<std::pair<double, double>> points;  // x ascending
  bool strong = false;                            // drawn thicker, with dots where there are few points
  bool dashed = false;
};

struct Chart {
  std::string title;
  std::string unit;
  std::vector<ChartLine> lines;
  bool log = false;  // logarithmic y axis; values that are not positive are left out
};

// A <figure> with heading, legend and picture; lines without points are left out. Empty when there is nothing
// to draw.
std::string ChartHtml(const Chart& chart);

// The label of a tick, with enough digits to distinguish it from the tick a `step` away (0: three digits).
std::string TickLabel(double value, double step);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_CHART_H_
