// figure.svg of an experiment: curves over its axis; or a row for each variant, when there is no axis, only
// one point, or differences to one variant are asked for. The paper's values are shown beside them.
#ifndef LATTICE_REPRODUCE_FIGURE_H_
#define LATTICE_REPRODUCE_FIGURE_H_

#include <string>

#include "reproduce/summary.h"

namespace lattice::reproduce {

std::string FigureSvg(const Summary& summary, const PaperTable& paper);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_FIGURE_H_
