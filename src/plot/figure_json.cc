// Parses the JSON description of a figure and draws it as line charts, rows or spans of time.
#include "plot/figure_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "io/json.h"
#include "plot/svg_figure.h"
#include "plot/svg_parts.h"
#include "plot/svg_rows.h"
#include "plot/svg_spans.h"

namespace lattice::plot {
namespace {

using nlohmann::json;

// Typed access to one JSON object, with errors that name the source and the member.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  std::string Text(const json& object, const char* key) const {
    return object.is_object() && !object.contains(key) ? "" : io::GetJson<std::string>(object, key, source_);
  }
  bool Flag(const json& object, const char* key) const {
    return object.contains(key) && io::GetJson<bool>(object, key, source_);
  }
  // An array; empty when there is none.
  const json& List(const json& object, const char* key) const {
    static const json kNone = json::array();
    Check(object.is_object(), "[plot] ", source_, ": \"", key, "\" is looked for in ", object.type_name(),
          "; expected an object");
    const auto found = object.find(key);
    if (found == object.end()) return kNone;
    Check(found->is_array(), "[plot] ", source_, ": \"", key, "\" is ", found->type_name(),
          "; expected an array");
    return *found;
  }
  double Number(const json& value, const char* what) const {
    Check(value.is_number(), "[plot] ", source_, ": ", what, " has ", value.type_name(),
          " where a number belongs");
    return value.get<double>();
  }
  std::vector<double> Numbers(const json& object, const char* key) const {
    std::vector<double> out;
    for (const json& value : List(object, key)) out.push_back(Number(value, key));
    return out;
  }
  std::optional<size_t> Colour(const json& object) const {
    const std::string memory = Text(object, "memory");
    return memory.empty() ? std::nullopt : std::optional(SvgColourOf(memory));
  }
  std::string_view source() const { return source_; }

 private:
  std::string_view source_;
};

Curve ReadLine(const Reader& reader, const json& line) {
  Curve curve{.name = reader.Text(line, "name"), .colour = reader.Colour(line)};
  for (const json& point : reader.List(line, "points")) {
    Check(point.is_array() && point.size() == 2, "[plot] ", reader.source(),
          ": a point must be an array of two numbers, [x, y]");
    curve.points.emplace_back(reader.Number(point[0], "a point"), reader.Number(point[1], "a point"));
  }
  return curve;
}

std::string LinesFigure(const Reader& reader, const json& figure) {
  std::vector<Panel> panels;
  for (const json& from : reader.List(figure, "panels")) {
    Panel panel{.title = reader.Text(from, "title"),
                .x_label = reader.Text(from, "x_label"),
                .y_label = reader.Text(from, "y_label"),
                .log_x = reader.Flag(from, "log_x"),
                .log_y = reader.Flag(from, "log_y")};
    for (const json& line : reader.List(from, "lines")) panel.series.push_back(ReadLine(reader, line));
    panels.push_back(std::move(panel));
  }
  return SvgFigure(reader.Text(figure, "title"), panels);
}

Spread ReadSpread(const Reader& reader, const json& row) {
  Spread spread{.values = reader.Numbers(row, "values"), .note = reader.Text(row, "note")};
  std::vector<double> sorted = spread.values;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty()) spread.middle = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  return spread;
}

std::string RowsFigure(const Reader& reader, const json& figure) {
  std::vector<RowName> names;
  for (const json& name : reader.List(figure, "names"))
    names.push_back({reader.Text(name, "text"), reader.Colour(name).value_or(SvgColourAt(names.size()))});
  std::vector<RowsPanel> panels;
  for (const json& from : reader.List(figure, "panels")) {
    RowsPanel panel{reader.Text(from, "title"), reader.Text(from, "x_label"), {}};
    for (const json& row : reader.List(from, "rows")) panel.rows.push_back(ReadSpread(reader, row));
    Check(panel.rows.size() == names.size(), "[plot] ", reader.source(), ": the panel \"", panel.title,
          "\" has ", panel.rows.size(), " rows for ", names.size(), " names");
    panels.push_back(std::move(panel));
  }
  return SvgRows(reader.Text(figure, "title"), reader.Text(figure, "key"), names, panels);
}

std::string SpansFigure(const Reader& reader, const json& figure) {
  std::vector<std::string> rows;
  for (const json& row : reader.List(figure, "rows")) {
    Check(row.is_string(), "[plot] ", reader.source(), ": rows has ", row.type_name(),
          " where a string belongs");
    rows.push_back(row.get<std::string>());
  }
  std::vector<TimeSpan> spans;
  for (const json& span : reader.List(figure, "spans")) {
    spans.push_back({io::GetJson<int64_t>(span, "row", reader.source()), reader.Text(span, "name"),
                     io::GetJson<double>(span, "from", reader.source()),
                     io::GetJson<double>(span, "to", reader.source())});
  }
  return SvgSpans(reader.Text(figure, "title"), reader.Text(figure, "x_label"), rows, spans);
}

}  // namespace

std::string FigureFromJson(const json& figure, std::string_view source) {
  const Reader reader(source);
  const auto kind = io::GetJson<std::string>(figure, "kind", source);
  if (kind == "lines") return LinesFigure(reader, figure);
  if (kind == "rows") return RowsFigure(reader, figure);
  if (kind == "spans") return SpansFigure(reader, figure);
  Fail("[plot] ", source, ": kind is \"", kind, "\"; there are lines, rows and spans");
}

}  // namespace lattice::plot
