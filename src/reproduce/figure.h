// figure.svg of an experiment: lines over its axis; or a row for each variant when there is no axis, one
// point, or differences to one variant are asked for; the paper's beside it.
#ifndef LATTICE_REPRODUCE_FIGURE_H_
#define LATTICE_REPRODUCE_FIGURE_H_

#include <string>

#include "reproduce/summary.h"

namespace lattice::reproduce {

std::string FigureSvg(const Summary& summary, const PaperTable& paper);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_FIGURE_H_
