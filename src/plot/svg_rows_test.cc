#include "plot/svg_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "io/testing.h"

namespace lattice::plot {
namespace {

TEST(SvgRows, DrawsWhatIsFinite) {
  const std::vector<RowName> names = {{"a & b", 3}, {"c", 3}};
  const std::vector<RowsPanel> panels = {
      {"here", "ppl", {{{2, 1, 3}, 2, "2.00"}, {{std::nan("")}, 0, "diverged"}}}};
  const std::string svg = SvgRows("T <1>", "", names, panels);
  EXPECT_TRUE(io::Says(svg, {"a &amp; b", "T &lt;1&gt;", "2.00", "diverged", "</svg>"}));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  size_t dots = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++dots;
  EXPECT_EQ(dots, 1u);
}

TEST(SvgRows, ARowFarOffIsAnArrow) {
  const std::vector<RowName> names = {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"far"}};
  RowsPanel panel{"here", "ppl", {}};
  for (const double value : {5.1, 5.2, 5.3, 5.4, 5.5, 90.0}) panel.rows.push_back({{value}, value, ""});
  const std::string svg = SvgRows("t", "", names, std::vector<RowsPanel>{panel});
  EXPECT_NE(svg.find(">5.2<"), std::string::npos);
  EXPECT_EQ(svg.find(">80<"), std::string::npos);
  EXPECT_NE(svg.find("<path"), std::string::npos);
  panel.rows.back() = {};
  EXPECT_EQ(SvgRows("t", "", names, std::vector<RowsPanel>{panel}).find("<path"), std::string::npos);
}

// The x coordinate of a text.
double PlaceOf(const std::string& svg, const std::string& text) {
  const size_t end = svg.find(">" + text + "<"), tag = svg.rfind("<text x=\"", end);
  return std::stod(svg.substr(tag + 9));
}

TEST(SvgRows, DivergedRunsDoNotHideTheOthers) {
  const std::vector<RowName> names = {{"a"}, {"b"}};
  const RowsPanel panel{"here", "ppl", {{{100, 200, 90'000}, 200, ""}, {{120, 130}, 125, ""}}};
  const std::string svg = SvgRows("t", "", names, std::vector<RowsPanel>{panel});
  const double decade = PlaceOf(svg, "1k") - PlaceOf(svg, "100");
  EXPECT_GT(decade, 50);
  EXPECT_NEAR(PlaceOf(svg, "10k") - PlaceOf(svg, "1k"), decade, 0.2);
}

TEST(SvgRows, AValueStandsBehindItsRowAndWellBeforeTheNextPanel) {
  const std::vector<RowName> names = {{"a", 2}, {"b", 5}};
  const RowsPanel panel{"here", "ppl", {{{1, 2}, 1.5, "first"}, {{5, 9}, 7, "second"}}};
  const std::string svg = SvgRows("t", "", names, std::vector<RowsPanel>{panel, panel});
  EXPECT_LT(PlaceOf(svg, "first"), 300) << "beside the dots of its own row";
  EXPECT_LT(PlaceOf(svg, "second") + 50, 540) << "where the next panel begins";
  EXPECT_TRUE(io::Says(svg, {"class=\"c2 dot\"", "class=\"c5 dot\""}));
}

TEST(SvgRows, WhatOthersFoundIsARing) {
  const std::vector<RowName> names = {{"a", 1}};
  const RowsPanel panel{"here", "ppl", {{{1, 2}, 1.5, "1.5", 8.0}}};
  EXPECT_TRUE(io::Says(SvgRows("t", "explained", names, std::vector<RowsPanel>{panel}),
                       {"class=\"c1 ring\"", ">explained<", ">8<"}));
}

TEST(SvgRows, AValueDoesNotStandOnTheRing) {
  const std::vector<RowName> names = {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"far"}};
  RowsPanel panel{"here", "%", {}};
  for (const double value : {0.0, 0.1, 0.2, 0.3}) panel.rows.push_back({{value}, value, "clear", value + 9});
  panel.rows.push_back({{0, 0.4}, 0.4, "moved", 1.5});
  panel.rows.push_back({{22}, 22, "far off", 9.5});
  const std::string svg = SvgRows("t", "", names, std::vector<RowsPanel>{panel});
  const double zero = PlaceOf(svg, "0");
  EXPECT_GT(PlaceOf(svg, "clear"), zero);
  EXPECT_LT(PlaceOf(svg, "moved"), zero + 1) << "before the dots; text ends there";
  EXPECT_GT(PlaceOf(svg, "far off"), 476) << "behind the arrow, outside of the axis";
}

TEST(SvgRows, RefusesRowsWithoutNames) {
  const std::vector<RowName> names = {{"a"}};
  EXPECT_THROW(SvgRows("t", "", names, std::vector<RowsPanel>{{"p", "x", {}}}), Error);
}

}  // namespace
}  // namespace lattice::plot
