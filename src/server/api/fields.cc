// Typed access to the fields of a JSON body, with errors that name the field.
#include "server/api/fields.h"

#include <cmath>

#include "base/nearest.h"
#include "io/json.h"
#include "server/engine/api_error.h"

namespace lattice::server {

using nlohmann::json;

std::string KindOf(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::string:
      return "a string";
    case json::value_t::array:
      return "a list";
    case json::value_t::object:
      return "an object";
    default:
      return value.dump();
  }
}

Fields::Fields(std::string_view body) : body_(json::object()) {
  if (body.empty()) return;
  try {
    body_ = io::ParseJson(body, "the body");
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "", "invalid_json");
  }
  if (!body_.is_object())
    throw ApiError(400, "the body is " + KindOf(body_) + "; expected a JSON object", "", "invalid_json");
}

const json* Fields::Find(const std::string& name) {
  known_.insert(name);
  const auto found = body_.find(name);
  return found == body_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::Bool(const std::string& name, bool otherwise) {
  const json* value = Find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean())
    throw ApiError(400, StrCat(name, " is ", KindOf(*value), "; expected true or false"), name);
  return value->get<bool>();
}

int64_t Fields::Integer(const std::string& name, int64_t otherwise, int64_t least, int64_t most) {
  const json* value = Find(name);
  if (value == nullptr) return otherwise;
  const bool too_big = value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX;
  if (!value->is_number_integer() || too_big || value->get<int64_t>() < least ||
      value->get<int64_t>() > most) {
    throw ApiError(
        400, StrCat(name, " is ", KindOf(*value), "; expected an integer from ", least, " to ", most), name);
  }
  return value->get<int64_t>();
}

double Fields::Number(const std::string& name, double otherwise, double least, double most) {
  const json* value = Find(name);
  if (value == nullptr) return otherwise;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most)) {
    throw ApiError(
        400, StrCat(name, " is ", KindOf(*value), "; expected a number from ", least, " to ", most), name);
  }
  return number;
}

std::string Fields::String(const std::string& name, const std::string& otherwise) {
  const json* value = Find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_string())
    throw ApiError(400, StrCat(name, " is ", KindOf(*value), "; expected a string"), name);
  return value->get<std::string>();
}

std::vector<int32_t> Fields::Ids(const json& value, const std::string& name, int64_t vocabulary,
                                 int64_t most) {
  if (!value.is_array())
    throw ApiError(400, StrCat(name, " is ", KindOf(value), "; expected a list of token ids"), name);
  if (static_cast<int64_t>(value.size()) > most) {
    throw ApiError(400, StrCat(name, " has ", value.size(), " tokens; at most ", most, " are accepted"), name,
                   "context_length_exceeded");
  }
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const json& id : value) {
    // The parser stores all non-negative integers as unsigned.
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocabulary)) {
      throw ApiError(400,
                     StrCat(name, " has ", KindOf(id), " among its token ids; expected integers from 0 to ",
                            vocabulary - 1),
                     name);
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

void Fields::Neutral(const std::string& name, std::initializer_list<json> values) {
  const json* value = Find(name);
  if (value == nullptr) return;
  for (const json& allowed : values) {
    if (*value == allowed) return;
  }
  throw ApiError(400, StrCat(name, " is not supported by this server; leave it out"), name,
                 "unsupported_parameter");
}

void Fields::Finish() {
  for (const auto& [name, value] : body_.items()) {
    if (known_.contains(name)) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    throw ApiError(
        400, StrCat("unknown field \"", name.substr(0, 64), "\"", DidYouMean(name.substr(0, 64), names)),
        name.substr(0, 64), "unknown_parameter");
  }
}

}  // namespace lattice::server
