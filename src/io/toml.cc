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

#include "base/ascii.h"
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

// The text with x for what strings contain, and spaces for comments. Where it is no TOML any more, the parser stops, too.
std::string Skeleton(std::string_view text) {
  std::string out(text);
  size_t at = 0;
  const auto skip_string = [&] {
    const char quote = text[at];
    const std::string three(3, quote);
    const bool lines = text.substr(at).starts_with(three);
    const std::string_view end = lines ? std::string_view(three) : text.substr(at, 1);
    at += end.size();
    while (at < text.size() && (lines || text[at] != '\n') && !text.substr(at).starts_with(end)) {
      const size_t taken = quote == '"' && text[at] == '\\' ? 2 : 1;
      for (const size_t stop = std::min(at + taken, text.size()); at < stop; ++at) {
        if (text[at] != '\n') out[at] = 'x';
      }
    }
    if (text.substr(at).starts_with(end)) at += end.size();
    // A string of several lines may end with two quotes of its own.
    for (int more = 0; lines && more < 2 && at < text.size() && text[at] == quote; ++more) ++at;
  };
  while (at < text.size()) {
    if (text[at] == '"' || text[at] == '\'') {
      skip_string();
    } else if (text[at] == '#') {
      for (; at < text.size() && text[at] != '\n'; ++at) out[at] = ' ';
    } else {
      ++at;
    }
  }
  return out;
}

// toml++ 3.3 relies on two things that a stranger's file need not have: that a key begins behind the bracket of a
// section, and that there are only some characters beyond ASCII outside of strings (others reach code that is marked as
// unreachable). A list in a list may begin a line with a bracket as well; there are none in our files.
void CheckParserCopes(std::string_view text, std::string_view source) {
  constexpr std::string_view kSpace = " \t", kByteOrderMark = "\xEF\xBB\xBF";
  const auto begins = [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view("_-\"']").find(c) != std::string_view::npos;
  };
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string skeleton = Skeleton(text);
  std::string_view left = skeleton;
  for (size_t number = 1; !left.empty(); ++number) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    const auto foreign = std::find_if_not(line.begin(), line.end(), IsAscii);
    Check(foreign == line.end(), "[toml] ", source, ":", number, ":", foreign - line.begin() + 1,
          ": expected ASCII outside of strings and comments");
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
  CheckParserCopes(text, source);
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
