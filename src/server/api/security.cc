// Checks of API keys and of the Host and Origin headers.
#include "server/api/security.h"

#include <algorithm>

#include "base/error.h"
#include "io/file.h"

namespace lattice::server {
namespace {

constexpr size_t kShortestKey = 16, kLongestKey = 512;

// The host of "host", "host:port" or "[host]:port"; empty for anything else.
std::string_view WithoutPort(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') + 1 : std::min(host.find(':'), host.size());
  const std::string_view port = host.substr(end);
  const bool digits = port.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return port.empty() || (port.front() == ':' && digits && port.size() <= 6) ? host.substr(0, end) : "";
}

}  // namespace

bool SameSecret(std::string_view given, std::string_view secret) {
  unsigned different = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    different |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return different == 0;
}

bool IsLoopback(std::string_view host) { return host == "localhost" || host == "::1" || host == "127.0.0.1"; }

bool HasKey(std::string_view authorization, std::string_view key) {
  constexpr std::string_view kScheme = "Bearer ";
  return authorization.starts_with(kScheme) && SameSecret(authorization.substr(kScheme.size()), key);
}

bool IsLocalHostHeader(std::string_view host) {
  const std::string_view name = WithoutPort(host);
  return name == "[::1]" || IsLoopback(name);
}

bool IsOwnOrigin(std::string_view origin, std::string_view host) {
  return origin == StrCat("http://", host) || origin == StrCat("https://", host);
}

std::string CheckedKey(std::string_view key, const std::string& source) {
  const bool visible = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; });
  Check(visible && key.size() >= kShortestKey && key.size() <= kLongestKey, "[serve] the key in ", source,
        " is not a line of ", kShortestKey, " to ", kLongestKey,
        " visible ASCII characters; make one with: openssl rand -hex 32");
  return std::string(key);
}

std::string ReadKeyFile(const std::filesystem::path& path) {
  const std::string content = io::ReadFile(path, 4096);
  std::string_view key = content;
  key = key.substr(0, key.find('\n'));
  while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.remove_suffix(1);
  return CheckedKey(key, path.string());
}

}  // namespace lattice::server
