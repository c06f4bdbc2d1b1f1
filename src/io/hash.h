// Hashes of content: SHA-256, HMAC and FNV-1a.
#ifndef LATTICE_IO_HASH_H_
#define LATTICE_IO_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lattice::io {

// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  void Update(std::span<const std::byte> data);
  void Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }
  // The digest as 64 hexadecimal digits. The object must not be used afterwards.
  std::string Finish();

 private:
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_{};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

std::string Sha256Hex(std::string_view text);
// HMAC-SHA-256 (RFC 2104), a code that only a holder of the key can make, as 64 hexadecimal digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

// FNV-1a, 64 bits: for hashing names, not for security.
constexpr uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace lattice::io

#endif  // LATTICE_IO_HASH_H_
