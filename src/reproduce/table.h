// table.md and report.html of an experiment.
#ifndef LATTICE_REPRODUCE_TABLE_H_
#define LATTICE_REPRODUCE_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "reproduce/summary.h"

namespace lattice::reproduce {

// Cells of text; the first row is the heading.
using Grid = std::vector<std::vector<std::string>>;

// A row for each variant: with an axis a column for each point, else median, spread, seeds, learning rate,
// parameters and the paper's value.
Grid ResultGrid(const Summary& summary);
Grid VerdictGrid(const Summary& summary);
// What its findings mean.
inline constexpr std::string_view kVerdictNote =
    "The same seeds are compared in pairs. A claim holds or fails where the bootstrap interval of the mean "
    "difference excludes zero and there are at least five pairs; else it is not decided.";
Grid TuningGrid(const Summary& summary);

struct Fact {
  std::string name, text;
  bool code = false;  // a command or a file's name
};

// Where the figures come from: command, commits, processors, runs.
std::vector<Fact> Provenance(const Summary& summary);

std::string TableMarkdown(const Summary& summary);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_TABLE_H_
