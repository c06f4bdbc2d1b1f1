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

TEST(FigureJson, NamesWhatIsWrong) {
  const auto error = [](const char* text) {
    return io::ErrorOf([&] { FigureFromJson(json::parse(text), "f.json"); });
  };
  EXPECT_TRUE(io::Says(error(R"([])"), {"f.json"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "pie"})"), {"f.json", "\"pie\"", "lines and rows"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "lines", "panels": 1})"), {"panels", "expected an array"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "lines", "panels": [1]})"), {"expected an object"}));
  EXPECT_TRUE(
      io::Says(error(R"({"kind": "lines", "panels": [{"lines": [{"points": [[1]]}]}]})"), {"two numbers"}));
  EXPECT_TRUE(io::Says(error(R"({"kind": "rows", "names": [{"text": "a"}], "panels": [{}]})"),
                       {"0 rows for 1 names"}));
}

}  // namespace
}  // namespace lattice::plot
