// The values of templates: truth, text and comparison as Python has them.
#ifndef LATTICE_TEXT_JINJA_VALUES_H_
#define LATTICE_TEXT_JINJA_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/nodes.h"

namespace lattice::text::jinja {

bool IsTrue(const Value& value);
// What {{ value }} writes.
std::string TextOf(const Value& value);
// As Python writes a value inside a list: strings in quotes.
std::string Repr(const Value& value);
bool Same(const Value& a, const Value& b);
// "a string", "undefined", ...
std::string KindName(const Value& value);

// What a call of a method, filter or test has in its parentheses.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at a place or of a name, or `otherwise`.
  Value Get(size_t place, std::string_view name, Value otherwise) const;
  // The text of an argument; throws Error, which calls it `what`, when it is no string.
  std::string Text(size_t place, std::string_view name, const std::string& otherwise,
                   std::string_view what) const;
};

// Throw Error when there is no such filter, test or method here, or it cannot be used on the value. A result may
// be larger than the limits allow by a factor; the caller checks it.
Value ApplyFilter(const std::string& name, const Value& value, const Arguments& arguments,
                  const Limits& limits);
bool ApplyTest(const std::string& name, const Value& value, const Arguments& arguments);
Value CallMethod(const Value& object, const std::string& name, const Arguments& arguments,
                 const Limits& limits);

// Bytes of a string and elements of a list, for the limits.
void CheckSize(const Value& value, const Limits& limits);

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_VALUES_H_
