// The memories side by side: one row for each, a column for each thing that was measured, every cell with the
// runs and the command it comes from. Described by configs/leaderboard.json:
//
//   title, note   text
//   memories      [{name, memory}]: the row, and the name the program knows the memory by
//   columns       [{title, note, figure, format, higher, sources}]: figure names a figure of the runs, or
//                 state_bytes, which follows from the model; format is plain, percent, count or bytes; higher
//                 says which is better
//     sources     [{experiment, point, what, names}]: the first that has results fills the whole column; names
//                 gives the variant of a memory where it is not called like the row; without results the
//                 column is empty
#ifndef LATTICE_REPRODUCE_LEADERBOARD_H_
#define LATTICE_REPRODUCE_LEADERBOARD_H_

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lattice::reproduce {

enum class CellFormat { kPlain, kPercent, kCount, kBytes };

struct BoardSource {
  std::string experiment, point, what;
  std::map<std::string, std::string> names;  // row -> variant
};

struct BoardCell {
  std::vector<double> values;  // of the seeds; NaN: diverged
  double middle = 0;           // their median
  std::string variant;
  std::vector<std::string> runs;  // hashes
  std::string command;            // of the first run
};

struct BoardColumn {
  std::string title, note, figure;
  CellFormat format = CellFormat::kPlain;
  bool higher = false;
  std::vector<BoardSource> sources;

  // Filled from the results.
  std::optional<size_t> filled_by;  // index of the source; none: nothing was measured
  std::string command;              // the command that makes the experiment; empty: there is none yet
  std::vector<std::optional<BoardCell>> cells;  // one for each row

  // The source that filled it, else the one that would.
  const BoardSource& Source() const { return sources[filled_by.value_or(0)]; }
};

struct BoardRow {
  std::string name, memory;
};

struct Leaderboard {
  std::string title, note;
  std::vector<BoardRow> rows;
  std::vector<BoardColumn> columns;
};

// Reads the description, and RESULTS/<experiment>/results.json where they are. Throws Error that names the
// file and the key when something is missing, misspelt or of the wrong type.
Leaderboard ReadLeaderboard(const std::filesystem::path& description, const std::filesystem::path& results);

// The number as the page and the figure show it.
std::string CellText(const BoardColumn& column, double value);

// A page without scripts; links are relative to the directory of the results.
std::string LeaderboardPage(const Leaderboard& board);
// The columns that have results, as one figure.
std::string LeaderboardSvg(const Leaderboard& board);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_LEADERBOARD_H_
