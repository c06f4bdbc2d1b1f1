// `lattice report`: an HTML report of one or several training runs.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "runs/report.h"

namespace lattice::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
};

int Report(const ReportFlags& options) {
  std::filesystem::path out = options.out;
  if (out.empty()) {
    out = options.runs.size() == 1 ? std::filesystem::path(options.runs[0]) / runs::kReportFile
                                   : std::filesystem::path(runs::kReportFile);
  }
  runs::WriteReport({options.runs.begin(), options.runs.end()}, out);
  std::cout << out.string() << "\n";
  return 0;
}

}  // namespace

void AddReport(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("report", "Draw what happened in one or several runs of training");
  const auto options = std::make_shared<ReportFlags>();
  command->add_option("runs", options->runs, "run directories")->required();
  command->add_option("--out", options->out,
                      "page to write; default: RUN/report.html, for several runs report.html here");
  command->footer(
      "Example: ./lattice report runs/book-lattice_dec-1 runs/book-deltanet-1 --out compare.html");
  command->callback([options, &chosen] { chosen = [options] { return Report(*options); }; });
}

}  // namespace lattice::cli
