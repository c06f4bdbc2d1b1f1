// Draws the leaderboard: a table whose cells lead to their runs, and a figure.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "plot/page.h"
#include "plot/svg_parts.h"
#include "plot/svg_rows.h"
#include "reproduce/leaderboard.h"
#include "text/markup.h"

namespace lattice::reproduce {
namespace {

using text::Escaped;

constexpr std::string_view kStyle =
    "<style>.none,.board small{color:var(--soft)}.board a{color:var(--c0)}"
    ".board :is(th,td){white-space:nowrap}tr:target{background:var(--rule)}</style>\n";

std::string Anchor(const BoardRow& row, size_t column) { return StrCat(row.memory, "-", column); }

std::string SeedsText(size_t seeds) { return StrCat(seeds, seeds == 1 ? " run" : " runs"); }

// The cells do not vary by seed where they follow from the model.
bool Varies(const BoardCell& cell) {
  return std::any_of(cell.values.begin(), cell.values.end(),
                     [&](double value) { return value != cell.values[0]; });
}

std::string RangeText(const BoardColumn& column, const BoardCell& cell) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double value : cell.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return low > high ? "" : StrCat(CellText(column, low), "–", CellText(column, high));
}

std::string CellHtml(const Leaderboard& board, size_t row, size_t column) {
  const std::optional<BoardCell>& cell = board.columns[column].cells[row];
  if (!cell) return "<td class=\"none\">no runs</td>";
  const BoardColumn& of = board.columns[column];
  return StrCat("<td><a href=\"#", Anchor(board.rows[row], column), "\">", CellText(of, cell->middle),
                "</a><br><small>", Varies(*cell) ? RangeText(of, *cell) : SeedsText(cell->runs.size()),
                "</small></td>");
}

std::string Table(const Leaderboard& board) {
  std::string out = "<div class=\"table\"><table class=\"board\">\n<tr><th>memory</th>";
  for (const BoardColumn& column : board.columns)
    out += StrCat("<th>", Escaped(column.title), "<br><small>", column.higher ? "more" : "less",
                  " is better</small></th>");
  out += "</tr>\n";
  for (size_t i = 0; i < board.rows.size(); ++i) {
    out += StrCat("<tr><td>", Escaped(board.rows[i].name), "</td>");
    for (size_t c = 0; c < board.columns.size(); ++c) out += CellHtml(board, i, c);
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

// What a column shows, and the command that makes it or would make it.
std::string ColumnItem(const BoardColumn& column) {
  const BoardSource& source = column.Source();
  std::string out = StrCat("<li><b>", Escaped(column.title), "</b>: ", Escaped(source.what), ". ",
                           Escaped(column.note), column.note.empty() ? "" : " ");
  if (column.filled_by) {
    out += StrCat("<a href=\"", source.experiment, "/report.html\">", Escaped(source.experiment), "</a>, ");
  } else {
    out += column.command.empty() ? "No experiment measures it yet." : "No runs yet: ";
  }
  return StrCat(out, column.command.empty() ? "" : StrCat("<code>", Escaped(column.command), "</code>"),
                "</li>\n");
}

std::string CellItem(const Leaderboard& board, size_t row, size_t column) {
  const BoardColumn& of = board.columns[column];
  const BoardCell& cell = *of.cells[row];
  std::string out = StrCat("<tr id=\"", Anchor(board.rows[row], column), "\"><td>",
                           Escaped(board.rows[row].name), ", ", Escaped(of.title), "</td><td>");
  for (size_t i = 0; i < cell.runs.size(); ++i)
    out += StrCat(i == 0 ? "" : "<br>", CellText(of, cell.values[i]), " <code>", cell.runs[i], "</code>");
  return StrCat(out, "</td><td><a href=\"", of.Source().experiment, "/results.json\">",
                of.Source().experiment, "</a></td><td class=\"wrap\"><code>", Escaped(cell.command),
                "</code></td></tr>\n");
}

std::string CellList(const Leaderboard& board) {
  std::string out =
      "<h2>Where every cell comes from</h2>\n<p>The value and hash of each run, the experiment, and the "
      "command "
      "of the first run; the others differ by their seed.</p>\n<div class=\"table\"><table>"
      "<tr><th>cell</th><th>runs</th><th>experiment</th><th>command</th></tr>\n";
  for (size_t c = 0; c < board.columns.size(); ++c) {
    for (size_t i = 0; i < board.rows.size(); ++i) {
      if (board.columns[c].cells[i]) out += CellItem(board, i, c);
    }
  }
  return out + "</table></div>\n";
}

plot::RowsPanel PanelOf(const BoardColumn& column) {
  const std::string title = StrCat(column.title, column.higher ? " (more is better)" : " (less is better)");
  plot::RowsPanel panel{title, column.Source().what, {}, column.format == CellFormat::kPercent};
  for (const std::optional<BoardCell>& cell : column.cells) {
    if (!cell) {
      panel.rows.push_back({.note = "no runs"});
      continue;
    }
    panel.rows.push_back(
        {.values = cell->values, .middle = cell->middle, .note = CellText(column, cell->middle)});
  }
  return panel;
}

}  // namespace

std::string LeaderboardPage(const Leaderboard& board) {
  std::string out =
      StrCat(plot::PageStart(board.title), kStyle, "<p>", Escaped(board.note), "</p>\n", Table(board),
             "<figure>", LeaderboardSvg(board), "</figure>\n<h2>What the columns are</h2>\n<ul>");
  for (const BoardColumn& column : board.columns) out += ColumnItem(column);
  return StrCat(out, "</ul>\n", CellList(board), plot::kPageEnd);
}

std::string LeaderboardSvg(const Leaderboard& board) {
  std::vector<plot::RowName> names;
  for (const BoardRow& row : board.rows) names.push_back({row.name, plot::SvgColourOf(row.memory)});
  std::vector<plot::RowsPanel> panels;
  for (const BoardColumn& column : board.columns) {
    if (column.filled_by) panels.push_back(PanelOf(column));
  }
  return plot::SvgRows(
      board.title,
      "dot: median of the runs, whose value stands beside it; bar: from the lowest to the highest", names,
      panels);
}

}  // namespace lattice::reproduce
