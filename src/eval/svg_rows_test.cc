#include "eval/svg_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "io/testing.h"

namespace lattice::eval {
namespace {

TEST(SvgRows, DrawsWhatIsFinite) {
  const std::vector<std::string> names = {"a & b", "c"};
  const std::vector<RowsPanel> panels = {
      {"here", "ppl", {{{2, 1, 3}, 2, "2.00"}, {{std::nan("")}, 0, "diverged"}}}};
  const std::string svg = SvgRows("T <1>", names, panels);
  EXPECT_TRUE(io::Says(svg, {"a &amp; b", "T &lt;1&gt;", "2.00", "diverged", "</svg>"}));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  size_t dots = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++dots;
  EXPECT_EQ(dots, 1u);
}

TEST(SvgRows, RefusesRowsWithoutNames) {
  const std::vector<std::string> names = {"a"};
  EXPECT_THROW(SvgRows("t", names, std::vector<RowsPanel>{{"p", "x", {}}}), Error);
}

}  // namespace
}  // namespace lattice::eval
