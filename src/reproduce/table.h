// The tables of table.md and report.html.
#ifndef LATTICE_REPRODUCE_TABLE_H_
#define LATTICE_REPRODUCE_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "reproduce/summary.h"

namespace lattice::reproduce {

// A table of text cells; the first row is the heading.
using Grid = std::vector<std::vector<std::string>>;

// A row for each variant. With several points there is a column for each; else the columns are median,
// spread, seeds, learning rate, parameters and the paper's value.
Grid ResultGrid(const Summary& summary);
Grid VerdictGrid(const Summary& summary);
// An explanation of the findings in the table of verdicts.
inline constexpr std::string_view kVerdictNote =
    "The same seeds are compared in pairs. A claim holds or fails where the bootstrap interval of the mean "
    "difference excludes zero and there are at least five pairs; else it is not decided.";
Grid TuningGrid(const Summary& summary);

struct Fact {
  std::string name, text;
  bool code = false;  // a command or a file name
};

// The power law of every variant, if the experiment asks for it.
Grid FitGrid(const Summary& summary);

inline constexpr std::string_view kFitNote =
    "An extrapolation: a power law through the losses of the sizes that were run. The interval has the "
    "spread of "
    "the seeds; whether the law goes on that far, it cannot know.";

// The provenance of the results: command, commits, processors, runs.
std::vector<Fact> Provenance(const Summary& summary);

std::string TableMarkdown(const Summary& summary);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_TABLE_H_
