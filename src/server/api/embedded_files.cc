#include "server/api/embedded_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/api/api.h"

namespace lattice::server {

const EmbeddedFile* FindEmbedded(std::string_view name) {
  const auto files = EmbeddedFiles();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string_view ContentType(std::string_view name) {
  using Type = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kTypes = {Type{".html", "text/html; charset=utf-8"},
                                        Type{".js", "text/javascript; charset=utf-8"},
                                        Type{".css", "text/css; charset=utf-8"},
                                        Type{".svg", "image/svg+xml"}, Type{".json", "application/json"}};
  for (const auto& [ending, type] : kTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

std::string_view OpenApiJson() { return FindEmbedded("openapi.json")->content; }

}  // namespace lattice::server
