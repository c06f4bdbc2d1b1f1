#include "plot/figure_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/testing.h"
#include "plot/svg_figure.h"
#include "plot/svg_rows.h"

namespace lattice::plot {
namespace {

using nlohmann::json;

TEST(FigureJson, DrawsWhatTheSamePanelsDraw) {
  const json figure = json::parse(R"({"kind": "lines", "title": "t", "panels": [
      {"title": "p", "x_label": "x", "log_x": true, "log_y": true,
       "lines": [{"name": "a", "points": [[1, 0.001], [4, 10]]}]}]})");
  Panel panel{.title = "p", .x_label = "x", .log_x = true, .log_y = true};
  panel.series.push_back({.name = "a", .points = {{1, 0.001}, {4, 10}}});
  const std::string drawn = FigureFromJson(figure, "f.json");
  EXPECT_EQ(drawn, SvgFigure("t", std::vector{panel}));
  EXPECT_NE(drawn.find(">0.01<"), std::string::npos) << "ticks of a logarithmic axis are powers of ten";
}

TEST(FigureJson, MarksTheMedianOfARow) {
  const json figure = json::parse(R"({"kind": "rows", "title": "t", "names": [{"text": "a"}],
      "panels": [{"title": "p", "rows": [{"values": [3, 1, 2], "note": "n"}]}]})");
  const RowName name{"a", 0};
  RowsPanel panel{"p", "", {{.values = {3, 1, 2}, .middle = 2, .note = "n"}}};
  EXPECT_EQ(FigureFromJson(figure, "f.json"), SvgRows("t", "", std::span(&name, 1), std::span(&panel, 1)));
}

TEST(FigureJson, DrawsABarForEverySpanOfTime) {
  const json figure =
      json::parse(R"({"kind": "spans", "title": "t", "x_label": "s", "rows": ["rank 0", "rank 1"],
      "spans": [{"row": 0, "name": "forward", "from": 0, "to": 1}, {"row": 1, "name": "wait", "from": 0, "to": 1},
                {"row": 1, "name": "forward", "from": 1, "to": 2}]})");
  const std::string drawn = FigureFromJson(figure, "f.json");
  size_t bars = 0;
  for (size_t at = 0; (at = drawn.find("<rect class=\"c", at)) != std::string::npos; ++at) ++bars;
  EXPECT_EQ(bars, 3u + 2u) << "the spans, and the two names of the key";
  EXPECT_NE(drawn.find(">rank 1<"), std::string::npos);
}

TEST(FigureJson, NamesWhatIsWrong) {
  const auto error = [](const char* text) {
    return io::ErrorOf([&] { FigureFromJson(json::parse(text), "f.json"); });
  };
  EXPECT_TRUE(io::Says(error(R"([])"), {"f.json"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "pie"})"), {"f.json", "\"pie\"", "lines, rows and spans"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "lines", "panels": 1})"), {"panels", "expected an array"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "lines", "panels": [1]})"), {"expected an object"}));
  EXPECT_TRUE(
      io::Says(error(R"({"kind": "lines", "panels": [{"lines": [{"points": [[1]]}]}]})"), {"two numbers"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "rows", "names": [{"text": "a"}], "panels": [{}]})"),
                       {"0 rows for 1 names"}));
  const auto span = [&](const std::string& numbers) {
    return error((R"({"kind": "spans", "rows": ["a"], "spans": [{"name": "n", )" + numbers + "}]}").c_str());
  };
  EXPECT_TRUE(io::Says(span(R"("row": 1, "from": 0, "to": 1)"), {"row 1 of 1"}));
  EXPECT_TRUE(io::Says(span(R"("row": -1, "from": 0, "to": 1)"), {"row -1 of 1"}));
  EXPECT_TRUE(io::Says(span(R"("row": 0, "from": 2, "to": 1)"), {"from 2 to 1"}));
  EXPECT_TRUE(io::Says(span(R"("row": 0, "from": 0)"), {"to"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "spans", "rows": [1]})"), {"where a string belongs"}));
}

}  // namespace
}  // namespace lattice::plot
