// SHA-256 over bytes that come piece by piece, and HMAC on top of it.
#include "io/hash.h"

#include <algorithm>

#include "io/sha_blocks.h"

namespace lattice::io {

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void Sha256::Update(std::span<const std::byte> data) {
  total_ += data.size();
  const auto* next = reinterpret_cast<const uint8_t*>(data.data());
  size_t left = data.size();
  while (left > 0) {
    if (pending_size_ == 0 && left >= 64) {
      const size_t blocks = left / 64;
      ShaBlocks(state_, next, blocks);
      next += 64 * blocks;
      left -= 64 * blocks;
      continue;
    }
    const size_t taken = std::min(left, 64 - pending_size_);
    std::copy_n(next, taken, pending_.begin() + static_cast<std::ptrdiff_t>(pending_size_));
    pending_size_ += taken;
    next += taken;
    left -= taken;
    if (pending_size_ == 64) {
      ShaBlocks(state_, pending_.data(), 1);
      pending_size_ = 0;
    }
  }
}

std::string Sha256::Finish() {
  const uint64_t bits = total_ * 8;
  std::string padding(1, '\x80');
  padding.append((119 - pending_size_) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) padding.push_back(static_cast<char>(bits >> shift));
  Update(padding);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) hex.push_back(kDigits[(word >> shift) & 15]);
  }
  return hex;
}

std::string Sha256Hex(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.Finish();
}

std::string HmacSha256Hex(std::string_view key, std::string_view text) {
  constexpr size_t kBlock = 64;
  const auto bytes_of = [](const std::string& hex) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
      bytes.push_back(static_cast<char>(16 * digit(hex[i]) + digit(hex[i + 1])));
    return bytes;
  };
  std::string block = key.size() > kBlock ? bytes_of(Sha256Hex(key)) : std::string(key);
  block.resize(kBlock, '\0');
  const auto masked = [&](char mask) {
    std::string out = block;
    for (char& c : out) c = static_cast<char>(c ^ mask);
    return out;
  };
  Sha256 inner, outer;
  inner.Update(masked(0x36));
  inner.Update(text);
  outer.Update(masked(0x5c));
  outer.Update(bytes_of(inner.Finish()));
  return outer.Finish();
}

}  // namespace lattice::io
