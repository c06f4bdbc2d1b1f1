#include "io/json.h"

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "io/file.h"

namespace lattice::io {
namespace {

using nlohmann::json;

// The library's messages start with "[json.exception.parse_error.101] "; ours start with the operation.
std::string_view WithoutTag(std::string_view message) {
  const size_t end = message.find("] ");
  return message.starts_with('[') && end != std::string_view::npos ? message.substr(end + 2) : message;
}

// Refuses what the library accepts silently: deep nesting and keys that occur twice.
class StrictRules {
 public:
  explicit StrictRules(std::string_view source) : source_(source) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    // `depth` counts the values that are open around this one.
    Check(!opens || depth < kMaxJsonDepth, "[json] ", source_, " is nested deeper than ", kMaxJsonDepth,
          " levels");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      Check(keys_.back().insert(key).second, "[json] ", source_, " has the key \"", key, "\" twice");
    }
    return true;
  }

 private:
  std::string_view source_;
  std::vector<std::set<std::string>> keys_;
};

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

// A value for an error message: short, and safe whatever is inside.
std::string Shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

json ParseJson(std::string_view text, std::string_view source) {
  // The library takes a NUL for the end of the text and would not look at what follows.
  Check(text.find('\0') == std::string_view::npos, "[json] ", source, " has a NUL byte");
  StrictRules rules(source);
  try {
    return json::parse(text.begin(), text.end(), std::ref(rules));
  } catch (const json::exception& error) {
    Fail("[json] ", source, ": ", WithoutTag(error.what()));
  }
}

json ReadJson(const std::filesystem::path& path) {
  return ParseJson(ReadFile(path, kMaxJsonBytes), path.string());
}

template <typename T>
T GetJson(const json& object, std::string_view key, std::string_view source) {
  // Not Check(): showing a large object would cost its size on every call.
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
    Fail("[json] cannot write: ", WithoutTag(error.what()));
  }
}

}  // namespace

std::string DumpJson(const json& value) { return Dump(value, -1); }
std::string DumpJsonIndented(const json& value) { return Dump(value, 2) + "\n"; }

}  // namespace lattice::io
