// Runs a parsed template.
#ifndef LATTICE_TEXT_JINJA_EVALUATOR_H_
#define LATTICE_TEXT_JINJA_EVALUATOR_H_

#include <string>

#include "text/jinja/nodes.h"

namespace lattice::text::jinja {

// The text of the template with these variables (an object). Throws Error: for what the template raises by
// raise_exception, for a mistake in it, and when it costs more than the limits allow.
std::string Render(const Node& parsed, const Value& variables, const Limits& limits);

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_EVALUATOR_H_
