// Reads a summary back from results.json, to redraw it without its runs.
#ifndef LATTICE_REPRODUCE_STORED_SUMMARY_H_
#define LATTICE_REPRODUCE_STORED_SUMMARY_H_

#include <nlohmann/json_fwd.hpp>

#include "reproduce/summary.h"

namespace lattice::reproduce {

// The inverse of ToJson(). Titles, claims and the paper's values come from `experiment` and `paper`.
// `experiment` must outlive the result. Throws Error when the results belong to another experiment or scale,
// or have a variant or a point that `experiment` does not have.
Summary ReadSummary(const nlohmann::json& results, const Experiment& experiment, const PaperTable& paper);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_STORED_SUMMARY_H_
