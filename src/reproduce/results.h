// The files of an experiment: results.json, table.md, figure.svg, report.html.
#ifndef LATTICE_REPRODUCE_RESULTS_H_
#define LATTICE_REPRODUCE_RESULTS_H_

#include <filesystem>
#include <string>

#include "reproduce/summary.h"

namespace lattice::reproduce {

// One page with figure, tables and all runs.
std::string ReportPage(const Summary& summary, const PaperTable& paper);

// Writes the four files into `directory`, each atomically. Throws Error when no run is done.
void WriteResults(const Summary& summary, const PaperTable& paper, const std::filesystem::path& directory);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_RESULTS_H_
