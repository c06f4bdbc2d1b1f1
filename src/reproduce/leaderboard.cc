// Gathers the cells of the leaderboard from the results of the experiments.
#include "reproduce/leaderboard.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/format.h"
#include "io/json.h"
#include "kernels/registry.h"
#include "model/config.h"
#include "model/cost.h"
#include "reproduce/config_object.h"
#include "reproduce/summary.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kStateBytes = "state_bytes";

CellFormat FormatOf(const std::string& name, const std::string& source) {
  if (name == "plain") return CellFormat::kPlain;
  if (name == "percent") return CellFormat::kPercent;
  if (name == "count") return CellFormat::kCount;
  Check(name == "bytes", source, ": format is \"", name, "\"; expected plain, percent, count or bytes");
  return CellFormat::kBytes;
}

BoardSource ReadSource(const json& value, const std::string& source) {
  ConfigObject in(value, source);
  BoardSource out;
  out.experiment = in.Need<std::string>("experiment");
  out.point = in.Get<std::string>("point", "");
  out.what = in.Need<std::string>("what");
  out.names = in.Get<std::map<std::string, std::string>>("names", {});
  in.Finish();
  return out;
}

BoardColumn ReadColumn(const json& value, const std::string& source) {
  ConfigObject in(value, source);
  BoardColumn out;
  out.title = in.Need<std::string>("title");
  out.note = in.Get<std::string>("note", "");
  out.figure = in.Need<std::string>("figure");
  out.format = FormatOf(in.Get<std::string>("format", "plain"), source);
  out.higher = in.Get<bool>("higher", false);
  for (const json& one : in.Need<json>("sources")) out.sources.push_back(ReadSource(one, source));
  in.Finish();
  Check(!out.sources.empty(), source, ": the column \"", out.title, "\" has no sources");
  return out;
}

// The bytes of one sequence's state after a sequence of training, from the settings in a run's command.
double StateBytesOf(const std::string& command) {
  model::Config config;
  std::istringstream words(command);
  for (std::string word, before; words >> word; before = word) {
    if (before != "--set") continue;
    if (word.starts_with("model.") || word.starts_with("train.")) model::Override(config, word);
  }
  return static_cast<double>(model::StateBytes(config.model, config.train.seq_len));
}

double FigureOfRun(const json& run, const BoardColumn& column) {
  if (column.figure == kStateBytes) return StateBytesOf(run.at("command"));
  const json& figures = run.at("figures");
  return figures.contains(column.figure) ? figures.at(column.figure).get<double>() : std::nan("");
}

std::optional<BoardCell> ReadCell(const json& results, const BoardColumn& column, const BoardSource& source,
                                  const std::string& row) {
  Experiment order;  // by which a median puts diverged runs last
  order.higher = column.higher;
  const auto named = source.names.find(row);
  const std::string& variant = named == source.names.end() ? row : named->second;
  for (const json& stored : results.at("rows")) {
    if (stored.at("variant") != variant || stored.at("point") != source.point) continue;
    BoardCell cell;
    cell.variant = variant;
    for (const json& run : stored.at("runs")) {
      cell.values.push_back(FigureOfRun(run, column));
      cell.runs.push_back(run.at("id"));
    }
    cell.command = stored.at("runs").at(0).at("command");
    cell.middle = MedianOf(order, cell.values);
    return cell;
  }
  return std::nullopt;
}

// Fills the column from the first source that has a cell.
void Fill(const Leaderboard& board, const fs::path& experiments, const fs::path& results,
          BoardColumn& column) {
  column.cells.assign(board.rows.size(), std::nullopt);
  const std::string& first = column.sources.front().experiment;
  if (fs::exists(experiments / (first + ".json"))) column.command = "./lattice reproduce " + first;
  for (size_t s = 0; s < column.sources.size(); ++s) {
    const BoardSource& source = column.sources[s];
    const fs::path file = results / source.experiment / "results.json";
    if (!fs::exists(file)) continue;
    const json stored = io::ReadJson(file);
    for (size_t i = 0; i < board.rows.size(); ++i)
      column.cells[i] = ReadCell(stored, column, source, board.rows[i].name);
    if (std::none_of(column.cells.begin(), column.cells.end(),
                     [](const auto& cell) { return cell.has_value(); }))
      continue;
    column.filled_by = s;
    column.command = stored.at("command");
    return;
  }
}

}  // namespace

Leaderboard ReadLeaderboard(const fs::path& description, const fs::path& results) {
  const std::string source = description.string();
  const json value = io::ReadJson(description);
  ConfigObject in(value, source);
  Leaderboard out;
  out.title = in.Need<std::string>("title");
  out.note = in.Get<std::string>("note", "");
  for (const json& one : in.Need<json>("memories")) {
    ConfigObject memory(one, source);
    out.rows.push_back({memory.Need<std::string>("name"), memory.Need<std::string>("memory")});
    memory.Finish();
    kernels::FindMemory(out.rows.back().memory);
  }
  for (const json& one : in.Need<json>("columns")) out.columns.push_back(ReadColumn(one, source));
  in.Finish();
  for (BoardColumn& column : out.columns) Fill(out, description.parent_path() / "reproduce", results, column);
  return out;
}

std::string CellText(const BoardColumn& column, double value) {
  if (!std::isfinite(value)) return "diverged";
  if (column.format == CellFormat::kPercent) return Fixed(100 * value, 1) + " %";
  if (column.format == CellFormat::kCount) return CountText(value);
  if (column.format == CellFormat::kBytes) return BytesText(static_cast<int64_t>(value));
  return Fixed(value, std::abs(value) < 10 ? 3 : 2);
}

}  // namespace lattice::reproduce
