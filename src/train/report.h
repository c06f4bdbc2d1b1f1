// report.html: what happened in one or several runs, on one page that needs nothing but itself.
#ifndef LATTICE_TRAIN_REPORT_H_
#define LATTICE_TRAIN_REPORT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "train/run_metrics.h"

namespace lattice::train {

// The page. One run: the memory's figures layer by layer; several: one colour a run, layers averaged.
std::string ReportHtml(const std::vector<RunMetrics>& runs);

// Reads the runs' metrics and writes the page atomically. Throws Error.
void WriteReport(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& file);

inline constexpr std::string_view kReportFile = "report.html";

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_REPORT_H_
