// Operators and functions on values.
#include "text/jinja/operations.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>

#include "base/error.h"

namespace lattice::text::jinja {

Value RangeOf(const Arguments& arguments, const Limits& limits) {
  const auto number = [&](size_t place, int64_t otherwise) {
    const Value value = arguments.Get(place, "", otherwise);
    Check(value.is_number_integer(), "[template] range of ", KindName(value));
    return value.get<int64_t>();
  };
  const bool one = arguments.values.size() < 2;
  const int64_t first = one ? 0 : number(0, 0), last = number(one ? 0 : 1, 0), step = number(2, 1);
  Check(step != 0, "[template] range in steps of 0");
  Value out = Value::array();
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
    out.push_back(i);
    CheckSize(out, limits);
    if (i > INT64_MAX - std::max<int64_t>(step, 0) || i < INT64_MIN - std::min<int64_t>(step, 0)) break;
  }
  return out;
}

Value TimeNow(const std::string& format) {
  Check(format.size() <= 256, "[template] strftime_now: the format is too long");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[4096];
  return std::string(text, std::strftime(text, sizeof(text), format.c_str(), &parts));
}

bool Contains(const Node& node, const Value& all, const Value& one) {
  if (all.is_string() && one.is_string())
    return all.get_ref<const std::string&>().find(one.get_ref<const std::string&>()) != std::string::npos;
  if (all.is_object()) return one.is_string() && all.contains(one.get<std::string>());
  Check(all.is_array(), "[template] line ", node.line, ": in ", KindName(all));
  return std::any_of(all.begin(), all.end(), [&](const Value& each) { return Same(each, one); });
}

Value Arithmetic(const Node& node, const Value& left, const Value& right) {
  const auto real = [](const Value& v) {
    return v.is_boolean() ? static_cast<double>(v.get<bool>()) : v.get<double>();
  };
  const double a = real(left), b = real(right);
  const std::string& op = node.text;
  if (op == "<") return a < b;
  if (op == ">") return a > b;
  if (op == "<=") return a <= b;
  if (op == ">=") return a >= b;
  Check((op != "/" && op != "//" && op != "%") || b != 0, "[template] line ", node.line, ": division by 0");
  if (op == "/") return a / b;
  const double result = op == "+"    ? a + b
                        : op == "-"  ? a - b
                        : op == "*"  ? a * b
                        : op == "//" ? std::floor(a / b)
                                     : a - std::floor(a / b) * b;
  const bool whole = !left.is_number_float() && !right.is_number_float();
  if (!whole) return result;
  Check(std::abs(result) < 9e15, "[template] line ", node.line, ": a number is too large");
  return static_cast<int64_t>(result);
}

}  // namespace lattice::text::jinja
