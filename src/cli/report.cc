// `lattice report`: an HTML report of one or several training runs, or of all memories.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/novels.h"
#include "io/file.h"
#include "reproduce/leaderboard.h"
#include "runs/report.h"

namespace lattice::cli {
namespace {

namespace fs = std::filesystem;

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
  bool leaderboard = false;
  std::string results = "results";
};

int Report(const ReportFlags& options) {
  fs::path out = options.out;
  if (out.empty()) {
    out = options.runs.size() == 1 ? fs::path(options.runs[0]) / runs::kReportFile
                                   : fs::path(runs::kReportFile);
  }
  runs::WriteReport({options.runs.begin(), options.runs.end()}, out);
  std::cout << out.string() << "\n";
  return 0;
}

// Writes the page, and the figure beside it.
int WriteLeaderboard(const ReportFlags& options) {
  if (!options.runs.empty()) throw UsageError("--leaderboard reads results, not runs; leave the runs out");
  if (!fs::is_directory(options.results))
    throw UsageError(StrCat("--results ", options.results, " is not a directory of `lattice reproduce`"));
  const fs::path out =
      options.out.empty() ? fs::path(options.results) / "leaderboard.html" : fs::path(options.out);
  const reproduce::Leaderboard board =
      reproduce::ReadLeaderboard(FindInTree("configs/leaderboard.json"), options.results);
  io::WriteFileAtomic(out, reproduce::LeaderboardPage(board));
  io::WriteFileAtomic(fs::path(out).replace_extension(".svg"), reproduce::LeaderboardSvg(board));
  std::cout << out.string() << "\n";
  return 0;
}

int ReportOrLeaderboard(const ReportFlags& options) {
  if (options.leaderboard) return WriteLeaderboard(options);
  if (options.runs.empty()) throw UsageError("pass run directories, or --leaderboard");
  return Report(options);
}

}  // namespace

void AddReport(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("report", "Draw what happened in one or several runs of training");
  const auto options = std::make_shared<ReportFlags>();
  command->add_option("runs", options->runs, "run directories");
  command->add_option("--out", options->out,
                      "page to write; default: RUN/report.html, for several runs report.html here, for the "
                      "leaderboard RESULTS/leaderboard.html");
  command->add_flag("--leaderboard", options->leaderboard,
                    "a page of all memories: what was measured of each, with the runs behind it");
  command->add_option("--results", options->results, "leaderboard: directory with the results of reproduce")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  ./lattice report runs/book-lattice_dec-1 runs/book-deltanet-1 --out compare.html\n"
      "  ./lattice report --leaderboard --results results");
  command->callback([options, &chosen] { chosen = [options] { return ReportOrLeaderboard(*options); }; });
}

}  // namespace lattice::cli
