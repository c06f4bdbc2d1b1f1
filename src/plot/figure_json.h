// Figures described as JSON, for programs that are not written in C++: benchmarks, notebooks, scripts.
//
//   {"kind": "lines", "title": "...", "panels": [
//     {"title": "...", "x_label": "...", "y_label": "...", "log_x": true, "log_y": true,
//      "lines": [{"name": "...", "memory": "lattice_dec", "points": [[1, 0.5], [2, 0.7]]}]}]}
//
//   {"kind": "rows", "title": "...", "key": "...", "names": [{"text": "...", "memory": "deltanet"}],
//    "panels": [{"title": "...", "x_label": "...", "rows": [{"values": [1.2, 1.3], "note": "1.25"}]}]}
//
//   {"kind": "spans", "title": "...", "x_label": "seconds", "rows": ["rank 0", "rank 1"],
//    "spans": [{"row": 0, "name": "forward", "from": 0.1, "to": 0.5}]}
//
// "memory" gives a line or a row the colour that the memory has in every figure; otherwise colours are
// assigned in the order of names. Every member but kind, title, and panels or spans is
// optional.
#ifndef LATTICE_PLOT_FIGURE_JSON_H_
#define LATTICE_PLOT_FIGURE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lattice::plot {

// The figure as SVG. `source` names the description in errors. Throws Error that names the member at fault.
std::string FigureFromJson(const nlohmann::json& figure, std::string_view source);

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_FIGURE_JSON_H_
