#include "plot/svg_figure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "io/testing.h"
#include "plot/svg_parts.h"

namespace lattice::plot {
namespace {

// Every tag that opens also closes, in order; attributes are quoted.
void ExpectWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(SvgFigure, IsWellFormedWhateverTheNames) {
  const Panel panel{.title = "a <b> & \"c\"",
                    .x_label = "x",
                    .y_label = "y",
                    .log_x = true,
                    .series = {{"one & two", {{512, 3.5}, {1024, 3.25}, {2048, 3}}}, {"three", {{512, 4}}}}};
  const std::string svg = SvgFigure("T <1>", std::vector<Panel>(4, panel));
  ExpectWellFormed(svg);
  EXPECT_TRUE(io::Says(svg, {"a &lt;b&gt; &amp; &quot;c&quot;", "one &amp; two", ">1024<", "<path"}));
}

TEST(SvgFigure, ColoursAreOfMemoriesAndDashesTellTheirVariantsApart) {
  const size_t lattice = SvgColourOf("lattice_dec"), other = SvgColourOf("deltanet");
  ASSERT_NE(lattice, other);
  const Panel panel{.series = {{"exact", {{1, 1}}, {}, lattice},
                               {"C=16", {{1, 2}}, {}, lattice},
                               {"DeltaNet", {{1, 3}}, {}, other}}};
  const std::string svg = SvgFigure("t", std::vector<Panel>{panel, panel});
  const auto has = [&](size_t colour, size_t dash) {
    return svg.find(StrCat("\"c", colour, " d", dash, " line\"")) != std::string::npos;
  };
  EXPECT_TRUE(has(lattice, 0) && has(lattice, 1) && has(other, 0));
  EXPECT_FALSE(has(lattice, 2) || has(other, 1)) << "a name looks the same in every panel";
  EXPECT_THROW(SvgColourOf("latice_dec"), Error);
}

TEST(SvgFigure, LeavesOutWhatCannotBeDrawn) {
  const double nan = std::nan("");
  const std::string svg = SvgFigure(
      "t", std::vector<Panel>{{.log_x = true, .series = {{"s", {{0, 1}, {1, nan}, {2, 5}, {4, 5}}}}}, {}});
  ExpectWellFormed(svg);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace lattice::plot
