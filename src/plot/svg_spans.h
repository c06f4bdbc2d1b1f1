// A chart of what happens when: a row for each actor, and a bar for each span of time.
#ifndef LATTICE_PLOT_SVG_SPANS_H_
#define LATTICE_PLOT_SVG_SPANS_H_

#include <cstdint>
#include <span>
#include <string>

namespace lattice::plot {

struct TimeSpan {
  int64_t row = 0;
  std::string name;  // what is done; spans of one name have one colour, which the key explains
  double from = 0, to = 0;
};

// Throws Error when a span is in none of the rows, ends before it begins, or is not finite.
std::string SvgSpans(const std::string& title, const std::string& x_label, std::span<const std::string> rows,
                     std::span<const TimeSpan> spans);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_SVG_SPANS_H_
