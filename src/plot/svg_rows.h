// A chart with a row for each name and a column for each panel: dots with their spread, and the value beside
// them.
#ifndef LATTICE_PLOT_SVG_ROWS_H_
#define LATTICE_PLOT_SVG_ROWS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lattice::plot {

struct RowName {
  std::string text;
  size_t colour = 0;  // an index of svg_parts.h
};

// One row in one panel. Without values only the note is shown.
struct Spread {
  std::vector<double> values = {};  // in any order; those that are not finite are left out
  double middle = 0;
  std::string note = {};                 // text beside the dots, such as the value
  std::optional<double> reference = {};  // drawn as a ring: a result from the literature
};

struct RowsPanel {
  std::string title;
  std::string x_label;
  std::vector<Spread> rows;  // one per name
  bool zero_to_one = false;  // axis from 0 to 1; otherwise it fits the values
};

// The panels in rows of up to two. Each panel has its own axis; a row far away from all others is drawn as an
// arrow at its edge. `key` is the line under the title that explains the dots.
std::string SvgRows(const std::string& title, const std::string& key, std::span<const RowName> names,
                    std::span<const RowsPanel> panels);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_SVG_ROWS_H_
