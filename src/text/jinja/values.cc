// Values as text, and compared, in the way of Python.
#include "text/jinja/values.h"

#include <cmath>

#include "base/error.h"

namespace lattice::text::jinja {
namespace {

std::string FloatText(double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = nlohmann::json(number).dump();
  return text == "null" ? "nan" : text;
}

}  // namespace

bool IsTrue(const Value& value) {
  if (value.is_discarded() || value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_float()) return value.get<double>() != 0;
  if (value.is_number()) return value.get<int64_t>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

std::string Repr(const Value& value) {
  if (value.is_discarded()) return "Undefined";
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number_float()) return FloatText(value.get<double>());
  if (value.is_number()) return std::to_string(value.get<int64_t>());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const char quote =
        text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
    std::string out(1, quote);
    for (const char c : text) {
      if (c == '\n') {
        out += "\\n";
      } else if (c == '\t') {
        out += "\\t";
      } else if (c == '\r') {
        out += "\\r";
      } else {
        if (c == '\\' || c == quote) out += '\\';
        out += c;
      }
    }
    return out + quote;
  }
  std::string out = value.is_array() ? "[" : "{";
  for (const auto& [key, item] : value.items()) {
    if (out.size() > 1) out += ", ";
    if (value.is_object()) out += Repr(Value(key)) + ": ";
    out += Repr(item);
  }
  return out + (value.is_array() ? "]" : "}");
}

std::string TextOf(const Value& value) {
  if (value.is_discarded()) return "";
  return value.is_string() ? value.get<std::string>() : Repr(value);
}

bool Same(const Value& a, const Value& b) {
  if (a.is_discarded() || b.is_discarded()) return a.is_discarded() && b.is_discarded();
  if (a.is_boolean() && b.is_number()) return static_cast<double>(a.get<bool>()) == b.get<double>();
  if (b.is_boolean() && a.is_number()) return Same(b, a);
  return a == b;
}

std::string KindName(const Value& value) {
  if (value.is_discarded()) return "undefined";
  if (value.is_null()) return "none";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "a dictionary";
  return value.is_boolean() ? "a truth value" : "a number";
}

Value Arguments::Get(size_t place, std::string_view name, Value otherwise) const {
  if (place < values.size()) return values[place];
  for (const auto& [key, value] : named) {
    if (key == name) return value;
  }
  return otherwise;
}

std::string Arguments::Text(size_t place, std::string_view name, const std::string& otherwise,
                            std::string_view what) const {
  const Value value = Get(place, name, Value(otherwise));
  Check(value.is_string(), "[template] ", what, " got ", KindName(value), "; expected a string");
  return value.get<std::string>();
}

void CheckSize(const Value& value, const Limits& limits) {
  if (value.is_string())
    Check(value.get_ref<const std::string&>().size() <= limits.output_bytes,
          "[template] a string has more than ", limits.output_bytes, " bytes");
  if (value.is_structured())
    Check(value.size() <= limits.elements, "[template] a list has more than ", limits.elements, " elements");
}

}  // namespace lattice::text::jinja
