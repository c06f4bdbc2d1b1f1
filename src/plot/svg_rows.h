// A chart with one row a name and a panel a column: dots with their spread, and the value beside them.
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
  size_t colour = 0;  // one of svg_parts.h
};

// One row in one panel. Without values the place stays empty, with the note as text.
struct Spread {
  std::vector<double> values = {};  // in any order; those that are not finite are left out
  double middle = 0;
  std::string note = {};                 // behind the spread, such as the value
  std::optional<double> reference = {};  // a ring: what others found
};

struct RowsPanel {
  std::string title;
  std::string x_label;
  std::vector<Spread> rows;  // as many as there are names
  bool zero_to_one = false;  // the axis; else what the values need
};

// The panels in lines of up to two. Each panel has an axis of its own; a row far off all others is an arrow
// at its end. `key` explains the dots, under the title.
std::string SvgRows(const std::string& title, const std::string& key, std::span<const RowName> names,
                    std::span<const RowsPanel> panels);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_SVG_ROWS_H_
