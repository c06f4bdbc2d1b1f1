// Access control: API keys, and protection from requests that other web pages make a browser send.
#ifndef LATTICE_SERVER_API_SECURITY_H_
#define LATTICE_SERVER_API_SECURITY_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace lattice::server {

// Compares in a time that depends on the length of `given` only.
bool SameSecret(std::string_view given, std::string_view secret);

// Whether only this machine can reach the address: "localhost", "127.0.0.1", "::1".
bool IsLoopback(std::string_view host);

// Whether "Authorization: Bearer KEY" has the key.
bool HasKey(std::string_view authorization, std::string_view key);

// Whether a Host header has a loopback name. The requests of a DNS rebinding attack have another.
bool IsLocalHostHeader(std::string_view host);
// Whether an Origin header names this server itself.
bool IsOwnOrigin(std::string_view origin, std::string_view host);

// Reads a key: the first line of a file, without surrounding spaces. Throws Error when the file cannot be
// read, or the key is shorter than 16 characters or not visible ASCII; the message does not contain the key.
std::string ReadKeyFile(const std::filesystem::path& path);
// Applies the same rules to a key from another source, which `source` names in errors.
std::string CheckedKey(std::string_view key, const std::string& source);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_SECURITY_H_
