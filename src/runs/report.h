// report.html: a self-contained page with the metrics of one or several runs.
#ifndef LATTICE_RUNS_REPORT_H_
#define LATTICE_RUNS_REPORT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "runs/run_metrics.h"

namespace lattice::runs {

// The page. For one run the memory's figures are shown layer by layer; for several, each run has a colour and
// layers are averaged.
std::string ReportHtml(const std::vector<RunMetrics>& runs);

// Reads the runs' metrics and writes the page atomically. Throws Error.
void WriteReport(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& file);

inline constexpr std::string_view kReportFile = "report.html";

}  // namespace lattice::runs

#endif  // LATTICE_RUNS_REPORT_H_
