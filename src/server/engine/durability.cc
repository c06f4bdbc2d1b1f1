#include "server/engine/durability.h"

#include <charconv>

#include "base/error.h"

namespace lattice::server {

Durability ParseDurability(const std::string& text) {
  constexpr std::string_view kTokens = "tokens=";
  if (text == "request") return {};
  if (text == "end") return {Durability::Level::kEnd, 0};
  Durability out{Durability::Level::kTokens, 0};
  const char* const last = text.data() + text.size();
  const bool named = text.starts_with(kTokens);
  const auto [end, error] = std::from_chars(text.data() + (named ? kTokens.size() : 0), last, out.tokens);
  Check(named && error == std::errc() && end == last && out.tokens >= 1, "[serve] --durability is \"", text,
        "\"; expected request, tokens=N (N of 1 or more) or end");
  return out;
}

}  // namespace lattice::server
