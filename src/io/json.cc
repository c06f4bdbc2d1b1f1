// Typed access to JSON values, and JSON as text. Parsing is in json_parse.cc.
#include "io/json.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json_events.h"

namespace lattice::io {
namespace {

using nlohmann::json;

template <typename T>
struct TypeName;
template <>
struct TypeName<bool> {
  static constexpr std::string_view kName = "true or false";
  static bool Matches(const json& value) { return value.is_boolean(); }
};
template <>
struct TypeName<int64_t> {
  static constexpr std::string_view kName = "an integer";
  static bool Matches(const json& value) {
    // Unsigned numbers above the range of int64_t would wrap silently.
    return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  }
};
template <>
struct TypeName<double> {
  static constexpr std::string_view kName = "a number";
  static bool Matches(const json& value) { return value.is_number(); }
};
template <>
struct TypeName<std::string> {
  static constexpr std::string_view kName = "a string";
  static bool Matches(const json& value) { return value.is_string(); }
};

// A value for an error message: shortened, and valid UTF-8 whatever it holds.
std::string Shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

template <typename T>
T GetJson(const json& object, std::string_view key, std::string_view source) {
  // Not Check(), which would print the object on every call, at the cost of its size.
  if (!object.is_object()) {
    Fail("[json] ", source, ": expected an object with the key \"", key, "\", got ", Shown(object));
  }
  const auto found = object.find(std::string(key));
  Check(found != object.end(), "[json] ", source, ": the key \"", key, "\" is missing; expected ",
        TypeName<T>::kName);
  if (!TypeName<T>::Matches(*found)) {
    Fail("[json] ", source, ": the key \"", key, "\" must be ", TypeName<T>::kName, ", got ", Shown(*found));
  }
  return found->template get<T>();
}

template bool GetJson<bool>(const json&, std::string_view, std::string_view);
template int64_t GetJson<int64_t>(const json&, std::string_view, std::string_view);
template double GetJson<double>(const json&, std::string_view, std::string_view);
template std::string GetJson<std::string>(const json&, std::string_view, std::string_view);

namespace {

std::string Dump(const json& value, int indent) {
  try {
    return value.dump(indent);
  } catch (const json::exception& error) {
    Fail("[json] cannot write: ", WithoutJsonTag(error.what()));
  }
}

}  // namespace

std::string DumpJson(const json& value) { return Dump(value, -1); }
std::string DumpJsonIndented(const json& value) { return Dump(value, 2) + "\n"; }

}  // namespace lattice::io
