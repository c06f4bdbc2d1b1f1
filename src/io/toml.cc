// Parses TOML with toml++ and flattens it to settings; writes scalars as TOML.
#include "io/toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace lattice::io {
namespace {

std::string Place(std::string_view source, const toml::source_position& at) {
  return StrCat(source, ":", at.line, ":", at.column);
}

TomlScalar ScalarOf(const toml::node& node, std::string_view key, std::string_view place) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* list = node.as_array(); list != nullptr && list->is_homogeneous(toml::node_type::string)) {
    std::string joined;
    for (const toml::node& word : *list) joined += (joined.empty() ? "" : ", ") + word.as_string()->get();
    return joined;
  }
  Fail("[toml] ", place, ": \"", key, "\" must be one string, a list of strings, a number or true/false");
}

void Append(const toml::table& table, const std::string& section, std::string_view source,
            TomlDocument& document) {
  for (const auto& [key, node] : table) {
    const toml::source_position at = key.source().begin;
    const std::string name(key.str());
    if (section.empty() && node.is_table()) {
      document.sections.push_back({name, static_cast<int>(at.line), static_cast<int>(at.column)});
      Append(*node.as_table(), name, source, document);
    } else {
      document.settings.push_back({section, name, ScalarOf(node, name, Place(source, at)),
                                   static_cast<int>(at.line), static_cast<int>(at.column)});
    }
  }
}

template <typename Placed>
void SortByPlace(std::vector<Placed>& items) {
  std::sort(items.begin(), items.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Formatted(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// toml++ 3.3 takes for granted that a key begins behind the bracket of a section, which a stranger's file need not
// have. A list in a list may begin a line with a bracket as well; there are none in our files.
void CheckSections(std::string_view text, std::string_view source) {
  constexpr std::string_view kSpace = " \t";
  const auto begins = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-\"']").find(c) != std::string_view::npos;
  };
  size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    size_t at = line.find_first_not_of(kSpace);
    if (at == std::string_view::npos || line[at] != '[') continue;
    if (line.substr(at).starts_with("[[")) ++at;
    at = std::min(line.find_first_not_of(kSpace, at + 1), line.size());
    Check(at < line.size() && begins(line[at]), "[toml] ", source, ":", number, ":", at + 1,
          ": expected the name of a section behind '['");
  }
}

}  // namespace

TomlDocument ParseToml(std::string_view text, std::string_view source) {
  CheckSections(text, source);
  const toml::parse_result result = toml::parse(text);
  if (!result) {
    Fail("[toml] ", Place(source, result.error().source().begin), ": ", result.error().description());
  }
  TomlDocument document;
  Append(result.table(), "", source, document);
  SortByPlace(document.settings);
  SortByPlace(document.sections);
  return document;
}

std::string FormatToml(const TomlScalar& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const int64_t* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const double* number = std::get_if<double>(&value)) return Formatted(*number);
  return Quoted(std::get<std::string>(value));
}

}  // namespace lattice::io
