// Filters, tests and methods.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>

#include "base/ascii.h"
#include "base/error.h"
#include "text/jinja/values.h"

namespace lattice::text::jinja {
namespace {

using Filter = std::function<Value(const Value&, const Arguments&, const Limits&)>;

const std::string& StringOf(const Value& value, std::string_view what) {
  Check(value.is_string(), "[template] ", what, " is for strings, not for ", KindName(value));
  return value.get_ref<const std::string&>();
}

std::string Stripped(std::string text, std::string_view characters, bool left, bool right) {
  if (right) text.erase(text.find_last_not_of(characters) + 1);
  if (left) text.erase(0, std::min(text.find_first_not_of(characters), text.size()));
  return text;
}

constexpr std::string_view kSpaces = " \t\n\r\f\v";

// ASCII letters only; chat templates change the case of roles and the like.
template <typename Change>
std::string Changed(std::string text, const Change& change) {
  std::transform(text.begin(), text.end(), text.begin(), [&](unsigned char c) {
    return c < 128 ? static_cast<char>(change(c)) : static_cast<char>(c);
  });
  return text;
}

std::string Capitalized(const std::string& text) {
  std::string out = Changed(text, ::tolower);
  if (!out.empty()) out[0] = Changed(out.substr(0, 1), ::toupper)[0];
  return out;
}

std::string Titled(std::string text) {
  bool inside = false;
  for (char& c : text) {
    const bool letter = IsLetter(c);
    c = Changed(std::string(1, c), [&](int each) { return inside ? ::tolower(each) : ::toupper(each); })[0];
    inside = letter;
  }
  return text;
}

std::string Replaced(const std::string& text, const std::string& from, const std::string& to,
                     const Limits& limits) {
  if (from.empty()) return text;
  std::string out;
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size()) {
    out.append(text, at, found - at).append(to);
    Check(out.size() <= limits.output_bytes, "[template] a string has more than ", limits.output_bytes,
          " bytes");
  }
  return out.append(text, at);
}

Value Split(const std::string& text, const Value& separator) {
  Value out = Value::array();
  if (!separator.is_string()) {
    for (size_t at = 0; (at = text.find_first_not_of(kSpaces, at)) != std::string::npos;) {
      const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end;
    }
    return out;
  }
  const auto& by = separator.get_ref<const std::string&>();
  Check(!by.empty(), "[template] split by an empty string");
  size_t at = 0;
  for (size_t found; (found = text.find(by, at)) != std::string::npos; at = found + by.size())
    out.push_back(text.substr(at, found - at));
  out.push_back(text.substr(at));
  return out;
}

// Python's json.dumps, which separates by ", " and ": ".
void Dump(const Value& value, int indent, int level, std::string& out) {
  Check(!value.is_discarded(), "[template] tojson of something undefined");
  if (!value.is_structured() || value.empty()) {
    out += value.dump(-1, ' ', false, Value::error_handler_t::replace);
    return;
  }
  const std::string line =
      indent < 0 ? "" : "\n" + std::string(static_cast<size_t>(indent * (level + 1)), ' ');
  out += value.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += indent < 0 ? ", " : ",";
    first = false;
    out += line;
    if (value.is_object()) out += Value(key).dump(-1, ' ', false, Value::error_handler_t::replace) + ": ";
    Dump(item, indent, level + 1, out);
  }
  if (indent >= 0) out += "\n" + std::string(static_cast<size_t>(indent * level), ' ');
  out += value.is_array() ? "]" : "}";
}

Value ToJson(const Value& value, const Arguments& arguments, const Limits&) {
  const Value indent = arguments.Get(0, "indent", nullptr);
  Check(indent.is_null() ||
            (indent.is_number_integer() && indent.get<int64_t>() >= 0 && indent.get<int64_t>() <= 16),
        "[template] tojson: indent is not a number from 0 to 16");
  std::string out;
  Dump(value, indent.is_null() ? -1 : indent.get<int>(), 0, out);
  return out;
}

Value ItemsOf(const Value& value) {
  Check(value.is_object(), "[template] items is for dictionaries, not for ", KindName(value));
  Value out = Value::array();
  for (const auto& [key, item] : value.items()) out.push_back(Value::array({key, item}));
  return out;
}

Value ListOf(const Value& value) {
  if (value.is_array()) return value;
  Value out = Value::array();
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) out.push_back(key);
  } else {
    for (const char c : StringOf(value, "list")) out.push_back(std::string(1, c));
  }
  return out;
}

Value LengthOf(const Value& value) {
  if (!value.is_string()) {
    Check(value.is_structured(), "[template] length is not defined for ", KindName(value));
    return static_cast<int64_t>(value.size());
  }
  const auto& text = value.get_ref<const std::string&>();
  return static_cast<int64_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

Value Attribute(const Value& of, const std::string& name) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  return of.is_object() && found != of.end() ? *found : Undefined();
}

// selectattr and rejectattr.
Value Selected(const Value& list, const Arguments& arguments, bool wanted) {
  Check(list.is_array(), "[template] selectattr is for lists, not for ", KindName(list));
  const std::string name = arguments.Text(0, "attribute", "", "selectattr");
  Value out = Value::array();
  for (const Value& item : list) {
    const Value attribute = Attribute(item, name);
    bool passes = IsTrue(attribute);
    if (arguments.values.size() > 1) {
      Arguments rest;
      rest.values.assign(arguments.values.begin() + 2, arguments.values.end());
      passes = ApplyTest(arguments.Text(1, "", "", "selectattr"), attribute, rest);
    }
    if (passes == wanted) out.push_back(item);
  }
  return out;
}

Value Mapped(const Value& list, const Arguments& arguments, const Limits& limits) {
  Check(list.is_array(), "[template] map is for lists, not for ", KindName(list));
  const Value attribute = arguments.Get(99, "attribute", Undefined());
  Value out = Value::array();
  for (const Value& item : list) {
    out.push_back(attribute.is_string() ? Attribute(item, attribute.get<std::string>())
                                        : ApplyFilter(arguments.Text(0, "", "", "map"), item, {}, limits));
  }
  return out;
}

Value Joined(const Value& list, const Arguments& arguments, const Limits& limits) {
  const std::string by = arguments.Text(0, "d", "", "join");
  std::string out;
  bool first = true;
  for (const Value& item : ListOf(list)) {
    if (!first) out += by;
    first = false;
    out += TextOf(item);
    Check(out.size() <= limits.output_bytes, "[template] a string has more than ", limits.output_bytes,
          " bytes");
  }
  return out;
}

Value EndOf(const Value& value, bool first) {
  const Value list = ListOf(value);
  return list.empty() ? Undefined() : first ? list.front() : list.back();
}

Value Reversed(const Value& value) {
  Value list = ListOf(value);
  std::reverse(list.begin(), list.end());
  return list;
}

Value Integer(const Value& value) {
  if (value.is_number()) return static_cast<int64_t>(value.get<double>());
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  return end == text.data() + text.size() ? number : 0;
}

const std::map<std::string, Filter>& Filters() {
  static const std::map<std::string, Filter> kFilters = {
      {"trim",
       [](const Value& v, const Arguments& a, const Limits&) {
         return Stripped(TextOf(v), a.Text(0, "chars", std::string(kSpaces), "trim"), true, true);
       }},
      {"upper", [](const Value& v, auto&, auto&) { return Changed(TextOf(v), ::toupper); }},
      {"lower", [](const Value& v, auto&, auto&) { return Changed(TextOf(v), ::tolower); }},
      {"capitalize", [](const Value& v, auto&, auto&) { return Capitalized(TextOf(v)); }},
      {"title", [](const Value& v, auto&, auto&) { return Titled(TextOf(v)); }},
      {"length", [](const Value& v, auto&, auto&) { return LengthOf(v); }},
      {"count", [](const Value& v, auto&, auto&) { return LengthOf(v); }},
      {"first", [](const Value& v, auto&, auto&) { return EndOf(v, true); }},
      {"last", [](const Value& v, auto&, auto&) { return EndOf(v, false); }},
      {"reverse", [](const Value& v, auto&, auto&) { return Reversed(v); }},
      {"list", [](const Value& v, auto&, auto&) { return ListOf(v); }},
      {"items", [](const Value& v, auto&, auto&) { return ItemsOf(v); }},
      {"string", [](const Value& v, auto&, auto&) { return TextOf(v); }},
      {"safe", [](const Value& v, auto&, auto&) { return v; }},
      {"int", [](const Value& v, auto&, auto&) { return Integer(v); }},
      {"tojson", ToJson},
      {"join", Joined},
      {"map", Mapped},
      {"selectattr", [](const Value& v, const Arguments& a, const Limits&) { return Selected(v, a, true); }},
      {"rejectattr", [](const Value& v, const Arguments& a, const Limits&) { return Selected(v, a, false); }},
      {"replace",
       [](const Value& v, const Arguments& a, const Limits& l) {
         return Replaced(TextOf(v), a.Text(0, "old", "", "replace"), a.Text(1, "new", "", "replace"), l);
       }},
      {"default",
       [](const Value& v, const Arguments& a, const Limits&) {
         const bool falsy = IsTrue(a.Get(1, "boolean", false)) && !IsTrue(v);
         return v.is_discarded() || falsy ? a.Get(0, "default_value", "") : v;
       }},
  };
  return kFilters;
}

Value CallStringMethod(const std::string& text, const std::string& name, const Arguments& arguments,
                       const Limits& limits) {
  const auto argument = [&](size_t place) { return arguments.Text(place, "", "", name); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Value given = arguments.Get(0, "", nullptr);
    return Stripped(text, given.is_string() ? given.get<std::string>() : std::string(kSpaces),
                    name != "rstrip", name != "lstrip");
  }
  if (name == "split") return Split(text, arguments.Get(0, "sep", nullptr));
  if (name == "startswith") return text.starts_with(argument(0));
  if (name == "endswith") return text.ends_with(argument(0));
  if (name == "upper") return Changed(text, ::toupper);
  if (name == "lower") return Changed(text, ::tolower);
  if (name == "capitalize") return Capitalized(text);
  if (name == "title") return Titled(text);
  if (name == "replace") return Replaced(text, argument(0), argument(1), limits);
  Fail("[template] strings have no method ", name,
       " here; there are strip, lstrip, rstrip, split, startswith, endswith, upper, lower, capitalize, title "
       "and "
       "replace");
}

}  // namespace

Value ApplyFilter(const std::string& name, const Value& value, const Arguments& arguments,
                  const Limits& limits) {
  const auto found = Filters().find(name == "d" ? "default" : name);
  if (found == Filters().end()) {
    std::string known;
    for (const auto& [each, filter] : Filters()) known += (known.empty() ? "" : ", ") + each;
    Fail("[template] the filter ", name, " is not supported; supported are ", known);
  }
  return found->second(value, arguments, limits);
}

bool ApplyTest(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "defined") return !value.is_discarded();
  if (name == "undefined") return value.is_discarded();
  if (name == "none") return value.is_null();
  if (name == "string") return value.is_string();
  if (name == "mapping") return value.is_object();
  if (name == "sequence" || name == "iterable") return value.is_structured() || value.is_string();
  if (name == "number") return value.is_number();
  if (name == "integer") return value.is_number_integer();
  if (name == "float") return value.is_number_float();
  if (name == "boolean") return value.is_boolean();
  if (name == "true") return value.is_boolean() && value.get<bool>();
  if (name == "false") return value.is_boolean() && !value.get<bool>();
  if (name == "odd" || name == "even")
    return value.is_number_integer() && (value.get<int64_t>() % 2 != 0) == (name == "odd");
  if (name == "equalto" || name == "eq" || name == "==")
    return Same(value, arguments.Get(0, "", Undefined()));
  if (name == "ne" || name == "!=") return !Same(value, arguments.Get(0, "", Undefined()));
  if (name == "in") {
    const Value list = arguments.Get(0, "", Value::array());
    return std::any_of(list.begin(), list.end(), [&](const Value& each) { return Same(each, value); });
  }
  Fail("[template] the test ", name,
       " is not supported; supported are defined, undefined, none, string, mapping, sequence, iterable, "
       "number, "
       "integer, float, boolean, true, false, odd, even, eq, ne and in");
}

Value CallMethod(const Value& object, const std::string& name, const Arguments& arguments,
                 const Limits& limits) {
  if (object.is_string())
    return CallStringMethod(object.get_ref<const std::string&>(), name, arguments, limits);
  if (object.is_object()) {
    if (name == "items") return ItemsOf(object);
    if (name == "keys") return ListOf(object);
    if (name == "values") {
      Value out = Value::array();
      for (const auto& [key, item] : object.items()) out.push_back(item);
      return out;
    }
    if (name == "get") {
      const Value found = Attribute(object, arguments.Text(0, "", "", "get"));
      return found.is_discarded() ? arguments.Get(1, "default", nullptr) : found;
    }
  }
  Fail("[template] ", KindName(object), " has no method ", name, " here");
}

}  // namespace lattice::text::jinja
