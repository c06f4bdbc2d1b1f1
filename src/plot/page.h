// Pages of HTML that need nothing but themselves, in one style for light and dark ground.
#ifndef LATTICE_PLOT_PAGE_H_
#define LATTICE_PLOT_PAGE_H_

#include <string>
#include <string_view>

namespace lattice::plot {

// Everything up to and with the heading; the body goes behind it, then kPageEnd.
std::string PageStart(const std::string& title);

inline constexpr std::string_view kPageEnd = "</main></body></html>\n";

}  // namespace lattice::plot

#endif  // LATTICE_PLOT_PAGE_H_
