#include "server/engine/api_error.h"

#include <nlohmann/json.hpp>

namespace lattice::server {
namespace {

const char* TypeOf(int status) {
  switch (status) {
    case 401:
    case 403:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 409:
      return "conflict_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

nlohmann::json OrNull(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

std::string ApiError::Bounded(const std::string& message) {
  constexpr size_t kLongest = 1000;
  std::string shown = message.substr(0, kLongest);
  if (message.size() > kLongest) shown.append(" ...");
  return shown;
}

std::string ApiError::Body() const {
  const nlohmann::ordered_json body = {
      {"error",
       {{"message", what()}, {"type", TypeOf(status_)}, {"param", OrNull(param_)}, {"code", OrNull(code_)}}}};
  // Messages quote input, which need not be UTF-8.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lattice::server
