// Who may ask: the key, and requests that a web page elsewhere makes a browser send.
#ifndef LATTICE_SERVER_API_SECURITY_H_
#define LATTICE_SERVER_API_SECURITY_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace lattice::server {

// In a time that depends on the length of `given` only.
bool SameSecret(std::string_view given, std::string_view secret);

// True for an address that only this machine can reach: "localhost", "127.0.0.1", "::1".
bool IsLoopback(std::string_view host);

// Whether "Authorization: Bearer KEY" has the key.
bool HasKey(std::string_view authorization, std::string_view key);

// Whether a Host header names this machine by a loopback name: a page elsewhere whose name was made to lead
// here does not.
bool IsLocalHostHeader(std::string_view host);
// Whether an Origin header is the page of this very server.
bool IsOwnOrigin(std::string_view origin, std::string_view host);

// The first line of a file, without spaces around it. Throws Error when it cannot be read, is shorter than 16
// characters, or has others than visible ASCII ones; the message does not hold the key.
std::string ReadKeyFile(const std::filesystem::path& path);
// The same rules for a key from elsewhere, which `source` names.
std::string CheckedKey(std::string_view key, const std::string& source);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_SECURITY_H_
