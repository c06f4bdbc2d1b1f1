// Checks and parses the values of configuration keys.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "io/toml.h"
#include "model/keys.h"

namespace lattice::model {
namespace {

std::string Joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

// A limit as text: 0.5, but 3 instead of 3.0 for an integer key.
std::string LimitText(const Key& key, double limit) {
  return key.type == KeyType::kInteger ? std::to_string(static_cast<int64_t>(limit)) : io::FormatToml(limit);
}

[[noreturn]] void FailType(const Key& key, std::string_view shown, std::string_view place) {
  Fail("[config] ", place, ": ", key.section, ".", key.name, " must be ", TypeText(key), ", got ", shown);
}

void CheckRange(const Key& key, double number, std::string_view shown, std::string_view place) {
  Check(!std::isnan(number), "[config] ", place, ": ", key.section, ".", key.name,
        " must be a number, got nan");
  Check(number >= key.min, "[config] ", place, ": ", key.section, ".", key.name, " must be at least ",
        LimitText(key, key.min), ", got ", shown);
  Check(number <= key.max, "[config] ", place, ": ", key.section, ".", key.name, " must be at most ",
        LimitText(key, key.max), ", got ", shown);
  Check(std::isfinite(number), "[config] ", place, ": ", key.section, ".", key.name, " must be finite, got ",
        shown);
}

void CheckChoice(const Key& key, const std::string& word, std::string_view place) {
  const auto choices = key.choices();
  const bool longer = !key.suffix.empty() && word.ends_with(key.suffix);
  const std::string_view base =
      std::string_view(word).substr(0, word.size() - (longer ? key.suffix.size() : 0));
  Check(std::find(choices.begin(), choices.end(), base) != choices.end(), "[config] ", place, ": unknown ",
        key.section, ".", key.name, " \"", word, "\"", DidYouMean(word, choices), " Valid: ", Joined(choices),
        key.hint);
}

// Removes the single underscores that group digits in TOML, as in 1_000_000.
std::string WithoutUnderscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = text[i] == '_' && i > 0 && i + 1 < text.size() && std::isdigit(text[i - 1] & 0x7f) &&
                         std::isdigit(text[i + 1] & 0x7f);
    if (!between) out += text[i];
  }
  return out;
}

template <typename T>
bool ParseWhole(const std::string& text, T& value) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(begin, end, value);
  return result.ec == std::errc() && result.ptr == end && begin != end;
}

}  // namespace

std::string TypeText(const Key& key) {
  switch (key.type) {
    case KeyType::kBool:
      return "true or false";
    case KeyType::kInteger:
      return "an integer";
    case KeyType::kNumber:
      return "a number";
    case KeyType::kText:
      return "a text";
    case KeyType::kChoice:
      return "one of: " + Joined(key.choices());
  }
  return "";
}

void RequireSection(std::string_view section, std::string_view place) {
  const auto sections = Sections();
  Check(std::find(sections.begin(), sections.end(), section) != sections.end(), "[config] ", place,
        ": unknown section [", section, "]", DidYouMean(section, sections));
}

const Key& RequireKey(std::string_view section, std::string_view name, std::string_view place) {
  RequireSection(section, place);
  if (const Key* key = FindKey(section, name)) return *key;
  std::vector<std::string_view> names;
  for (const Key& key : Keys()) {
    Check(key.name != name, "[config] ", place, ": unknown key \"", name, "\" in [", section,
          "]; did you mean \"", key.section, ".", key.name, "\"?");
    if (key.section == section) names.push_back(key.name);
  }
  Fail("[config] ", place, ": unknown key \"", name, "\" in [", section, "]", DidYouMean(name, names));
}

Value CheckValue(const Key& key, const Value& value, std::string_view place) {
  const std::string shown = io::FormatToml(value);
  if (key.type == KeyType::kInteger && std::holds_alternative<int64_t>(value)) {
    CheckRange(key, static_cast<double>(std::get<int64_t>(value)), shown, place);
    return value;
  }
  if (key.type == KeyType::kNumber && std::holds_alternative<int64_t>(value)) {
    return CheckValue(key, static_cast<double>(std::get<int64_t>(value)), place);
  }
  if (key.type == KeyType::kNumber && std::holds_alternative<double>(value)) {
    CheckRange(key, std::get<double>(value), shown, place);
    return value;
  }
  if (key.type == KeyType::kBool && std::holds_alternative<bool>(value)) return value;
  if (key.type == KeyType::kText && std::holds_alternative<std::string>(value)) return value;
  if (key.type == KeyType::kChoice && std::holds_alternative<std::string>(value)) {
    CheckChoice(key, std::get<std::string>(value), place);
    return value;
  }
  FailType(key, shown, place);
}

void CheckRanges(const ModelConfig& model) {
  Config config;
  config.model = model;
  for (const Key& key : Keys()) CheckValue(key, key.get(config), "a model");
}

Value ParseValue(const Key& key, std::string_view text, std::string_view place) {
  if (key.type == KeyType::kText || key.type == KeyType::kChoice) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return CheckValue(key, std::string(quoted ? text.substr(1, text.size() - 2) : text), place);
  }
  const std::string shown = StrCat("\"", text, "\"");
  if (key.type == KeyType::kBool) {
    if (text != "true" && text != "false") FailType(key, shown, place);
    return text == "true";
  }
  const std::string digits = WithoutUnderscores(text);
  if (key.type == KeyType::kInteger) {
    int64_t number = 0;
    if (!ParseWhole(digits, number)) FailType(key, shown, place);
    return CheckValue(key, number, place);
  }
  double number = 0;
  if (!ParseWhole(digits, number)) FailType(key, shown, place);
  return CheckValue(key, number, place);
}

}  // namespace lattice::model
