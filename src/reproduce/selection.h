// What one experiment decides for a later one: learning rates, and the best variant of every family. The later
// experiment has other text and other seeds, and tunes nothing.
#ifndef LATTICE_REPRODUCE_SELECTION_H_
#define LATTICE_REPRODUCE_SELECTION_H_

#include <map>
#include <string>

#include "reproduce/plan.h"

namespace lattice::reproduce {

struct Selection {
  std::map<std::string, double> rates;  // the best by tuning group; only of groups that are complete
  std::map<std::string, const Variant*> winners;  // by family; only of families with all runs done
};

// The winner of a family has the best mean figure over its seeds at the first point; a run that diverged makes
// its variant the worst, and of equals the first wins. `experiment` must outlive the result.
Selection Select(const Experiment& experiment, const Plan& plan, const FigureOf& figure);

// Gives the later experiment its rates and winners, as far as they are decided. Throws Error when it names a
// group or family that the earlier one does not have.
void Apply(const Selection& selection, const Experiment& earlier, Experiment& later);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_SELECTION_H_
