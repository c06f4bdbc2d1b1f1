// Estimates of how long runs will take.
#ifndef LATTICE_REPRODUCE_ESTIMATE_H_
#define LATTICE_REPRODUCE_ESTIMATE_H_

#include <optional>
#include <span>
#include <string>

#include "reproduce/run_store.h"

namespace lattice::reproduce {

// Floating-point operations of a run: forward and backward of every token, as model/cost.h counts them.
double RunFlops(const Run& run);

// The median of the operations per second of the runs among `runs` that are done and were made on a processor
// like this one; nothing when there is none.
std::optional<double> MeasuredRate(const RunStore& store, std::span<const Run> runs);

// The plan as text: a line for each variant and each tuned group, then the missing runs and the time they
// take on `jobs` processes of `rate` operations per second each.
std::string PlanText(const Experiment& experiment, const Plan& plan, const RunStore& store, double rate,
                     int jobs);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_ESTIMATE_H_
