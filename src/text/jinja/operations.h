// Operators and functions on values. Internal to src/text/jinja.
#ifndef LATTICE_TEXT_JINJA_OPERATIONS_H_
#define LATTICE_TEXT_JINJA_OPERATIONS_H_

#include <string>

#include "text/jinja/values.h"

namespace lattice::text::jinja {

// `one in all`.
bool Contains(const Node& node, const Value& all, const Value& one);
// The operator node.text between two numbers or truth values.
Value Arithmetic(const Node& node, const Value& left, const Value& right);
// range(...)
Value RangeOf(const Arguments& arguments, const Limits& limits);
// strftime_now(format)
Value TimeNow(const std::string& format);

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_OPERATIONS_H_
