// The frame of self-contained HTML pages, in one style with a light and a dark variant.
#ifndef LATTICE_PLOT_PAGE_H_
#define LATTICE_PLOT_PAGE_H_

#include <string>
#include <string_view>

namespace lattice::plot {

// The page up to and including the heading; append the body, then kPageEnd.
std::string PageStart(const std::string& title);

inline constexpr std::string_view kPageEnd = "</main></body></html>\n";

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_PAGE_H_
