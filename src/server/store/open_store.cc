// Chooses the store that --store names.
#include <cstdlib>

#include "io/file.h"
#include "server/store/directory_store.h"
#include "server/store/redis_store.h"
#include "server/store/redis_url.h"
#include "server/store/state_store.h"

namespace lattice::server::store {
namespace {

std::string FirstLine(const std::string& path) {
  const std::string content = io::ReadFile(path, 4096);
  std::string line = content.substr(0, content.find('\n'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// User and password: the line "password" or "user:password" of a file, or the environment.
void ReadLogin(const std::string& password_file, RedisAddress& address) {
  address.user = Variable("LATTICE_REDIS_USER");
  address.password = Variable("LATTICE_REDIS_PASSWORD");
  if (password_file.empty()) return;
  const std::string line = FirstLine(password_file);
  const size_t colon = line.find(':');
  if (colon != std::string::npos) address.user = line.substr(0, colon);
  address.password = colon == std::string::npos ? line : line.substr(colon + 1);
}

}  // namespace

bool IsSessionId(std::string_view id) {
  constexpr std::string_view kPrefix = "session-";
  return id.size() == kPrefix.size() + 32 && id.starts_with(kPrefix) &&
         id.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

std::unique_ptr<StateStore> OpenStore(const std::string& spec, const StoreLimits& limits,
                                      const std::string& password_file, const std::string& ca_file) {
  if (spec.empty() || spec == "memory") return nullptr;
  if (spec.find("://") == std::string::npos) return std::make_unique<DirectoryStore>(spec, limits);
  RedisAddress address = ParseRedisUrl(spec);
  ReadLogin(password_file, address);
  address.ca_file = ca_file;
  return OpenRedis(address, limits);
}

}  // namespace lattice::server::store
