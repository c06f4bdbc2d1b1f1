// Parses JSON from untrusted sources with the JSON library's SAX parser: into a tree, or only one of its
// fields.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "io/json_events.h"

namespace lattice::io {
namespace {

using nlohmann::json;

// The most bytes of a text that a message quotes.
constexpr size_t kLongestExcerpt = 200;

// Builds the tree of a text. The library's own builder, with a callback, scans the whole parent at the end of
// every object, so a list of n objects takes n^2 steps.
class TreeBuilder final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  json Take() { return std::move(root_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }

  bool start_object(size_t) override { return AddOpen(json::object()); }
  bool start_array(size_t) override { return AddOpen(json::array()); }
  bool end_object() override { return ClosePart(); }
  bool end_array() override { return ClosePart(); }

  bool key(std::string& name) override {
    const auto [member, fresh] = open_.back()->emplace(std::move(name), nullptr);
    Check(fresh, prefix(), " has the key \"", Shortened(member.key(), kLongestExcerpt), "\" twice");
    place_ = &*member;
    return true;
  }

 private:
  bool Add(json value) {
    Value();
    Place() = std::move(value);
    return true;
  }

  bool AddOpen(json part) {
    Open();
    json& placed = Place() = std::move(part);
    open_.push_back(&placed);
    return true;
  }

  bool ClosePart() {
    Close();
    open_.pop_back();
    return true;
  }

  // Where the next value goes. An open value does not move, because its parent does not grow meanwhile.
  json& Place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *place_;
    return open_.back()->emplace_back(nullptr);
  }

  json root_;
  std::vector<json*> open_;
  json* place_ = nullptr;  // the member of the key that was read last
};

// Stores one string of the outermost object and drops everything else.
class FieldReader final : public JsonEvents {
 public:
  FieldReader(std::string_view field, const JsonLimits& limits)
      : JsonEvents("the JSON text", limits), field_(field) {}

  std::string Take() {
    Check(object_, "not a JSON object");
    Check(found_, "no key \"", field_, "\"; there are: ", keys_);
    Check(text_.has_value(), "the key \"", field_, "\" holds no text");
    return std::move(*text_);
  }

  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(int64_t) override { return Other(); }
  bool number_unsigned(uint64_t) override { return Other(); }
  bool number_float(double, const std::string&) override { return Other(); }

  bool string(std::string& value) override {
    Other();
    if (AtField()) text_ = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    object_ |= depth() == 0;
    Other();
    Open();
    return true;
  }
  bool start_array(size_t) override {
    Other();
    Open();
    return true;
  }
  bool end_object() override {
    Close();
    return true;
  }
  bool end_array() override {
    Close();
    return true;
  }

  bool key(std::string& name) override {
    if (depth() != 1) return true;
    at_field_ = name == field_;
    found_ |= at_field_;
    if (keys_.size() < kLongestExcerpt) {
      keys_ += StrCat(keys_.empty() ? "" : ", ", Shortened(name, kLongestExcerpt));
    }
    return true;
  }

 private:
  bool AtField() const { return at_field_ && object_ && depth() == 1; }

  // Any value of the field discards the text of an earlier one: the last value counts.
  bool Other() {
    if (AtField()) text_.reset();
    return true;
  }

  std::string_view field_;
  bool object_ = false, found_ = false;
  bool at_field_ = false;  // the outermost object's last key is the field
  std::string keys_;       // for the message
  std::optional<std::string> text_;
};

}  // namespace

std::string_view WithoutJsonTag(std::string_view message) {
  const size_t end = message.find("] ");
  return message.starts_with('[') && end != std::string_view::npos ? message.substr(end + 2) : message;
}

void JsonEvents::Value() {
  Check(++values_ <= limits_.values, prefix_, " has more than ", limits_.values, " values");
}

void JsonEvents::Open() {
  Value();
  Check(++depth_ <= limits_.depth, prefix_, " is nested deeper than ", limits_.depth, " levels");
}

bool JsonEvents::parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
  const std::string what = Shortened(WithoutJsonTag(error.what()), kLongestExcerpt);
  // The library reports numbers that are out of range without a position.
  const bool placed = what.find("line ") != std::string::npos;
  Fail(prefix_, ": ", what, placed ? "" : StrCat(" at byte ", position));
}

void JsonEvents::Read(std::string_view text) {
  Check(text.size() <= limits_.bytes, prefix_, " has ", text.size(), " bytes; at most ", limits_.bytes,
        " are accepted");
  // The library takes a NUL for the end of the text and would ignore what follows.
  Check(text.find('\0') == std::string_view::npos, prefix_, " has a NUL byte");
  json::sax_parse(text.begin(), text.end(), this);
}

json ParseJson(std::string_view text, std::string_view source, const JsonLimits& limits) {
  TreeBuilder builder(StrCat("[json] ", source), limits);
  builder.Read(text);
  return builder.Take();
}

json ReadJson(const std::filesystem::path& path, const JsonLimits& limits) {
  return ParseJson(ReadFile(path, limits.bytes), path.string(), limits);
}

json ParseJsonLine(std::string_view line) {
  try {
    return ParseJson(line, "the line");
  } catch (const Error&) {
    return nullptr;
  }
}

std::string JsonStringField(std::string_view text, std::string_view field) {
  // Only the field is stored, so size is not limited; depth is, because the parser needs memory for each
  // level.
  FieldReader reader(field, {.depth = 1024, .values = SIZE_MAX, .bytes = SIZE_MAX});
  reader.Read(text);
  return reader.Take();
}

}  // namespace lattice::io
