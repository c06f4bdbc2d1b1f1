// Parses redis://host:port/db strictly: what it does not know is refused, above all passwords.
#include "server/store/redis_url.h"

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace lattice::server::store {
namespace {

int Number(std::string_view text, int most, const char* what) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  Check(error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= most,
        "[store] the ", what, " of the address is not a number from 0 to ", most,
        "; expected redis://host:port/db");
  return value;
}

}  // namespace

RedisAddress ParseRedisUrl(const std::string& url) {
  RedisAddress out;
  const size_t scheme = url.find("://");
  const std::string_view kind = std::string_view(url).substr(0, scheme);
  Check(kind == "redis" || kind == "rediss", "[store] \"", kind,
        "\" is no kind of store; expected memory, a directory, redis://host:port/db or rediss://...");
  out.tls = kind == "rediss";
  std::string_view rest = std::string_view(url).substr(scheme + 3);
  Check(rest.find('@') == std::string_view::npos,
        "[store] a password does not belong on a command line, which every user of this machine can read; "
        "set LATTICE_REDIS_PASSWORD (and LATTICE_REDIS_USER), or pass --store-password-file");
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos && slash + 1 < rest.size())
    out.database = Number(rest.substr(slash + 1), 65535, "database");
  rest = rest.substr(0, slash);
  // An IPv6 address stands in brackets.
  std::string_view host = rest.substr(0, rest.find(':'));
  if (rest.starts_with('[')) {
    rest.remove_prefix(1);
    host = rest.substr(0, rest.find(']'));
  }
  const size_t colon = rest.find(':', host.size());
  if (colon != std::string_view::npos) out.port = Number(rest.substr(colon + 1), 65535, "port");
  out.host = host;
  Check(!out.host.empty(), "[store] the address names no host; expected redis://host:port/db");
  return out;
}

}  // namespace lattice::server::store
