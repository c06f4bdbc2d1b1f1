// Paths of routes: "/v1/sessions/{id}/fork".
#ifndef LATTICE_SERVER_API_PATH_PATTERN_H_
#define LATTICE_SERVER_API_PATH_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>

namespace lattice::server {

// The part of `path` that matches {id} in `pattern`; nothing when they do not match.
inline std::optional<std::string> MatchPath(std::string_view pattern, std::string_view path) {
  const size_t open = pattern.find("{id}");
  if (open == std::string_view::npos) return pattern == path ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, open), after = pattern.substr(open + 4);
  if (!path.starts_with(before) || !path.ends_with(after) || path.size() <= before.size() + after.size())
    return std::nullopt;
  const std::string_view id = path.substr(before.size(), path.size() - before.size() - after.size());
  return id.find('/') == std::string_view::npos ? std::optional<std::string>(id) : std::nullopt;
}

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_PATH_PATTERN_H_
