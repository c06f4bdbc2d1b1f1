// A chart with one row a name and a panel a column: dots with their spread, and the value beside them.
#ifndef LATTICE_EVAL_SVG_ROWS_H_
#define LATTICE_EVAL_SVG_ROWS_H_

#include <span>
#include <string>
#include <vector>

namespace lattice::eval {

// One row in one panel. Without values the place stays empty, with the note as text.
struct Spread {
  std::vector<double> values = {};  // in any order; those that are not finite are left out
  double middle = 0;
  std::string note = {};  // beside the dot, such as the value
};

struct RowsPanel {
  std::string title;
  std::string x_label;
  std::vector<Spread> rows;  // as many as there are names
};

// The panels side by side. A name has the colour of its row; each panel has an axis of its own; a row far
// off all others is an arrow at its end.
std::string SvgRows(const std::string& title, std::span<const std::string> names,
                    std::span<const RowsPanel> panels);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_SVG_ROWS_H_
