// A fast 64-bit checksum of file content. It detects accidents (flipped bits, truncation, swapped blocks),
// not tampering. The values are part of the formats of token files and checkpoints and do not change.
#ifndef LATTICE_IO_CHECKSUM_H_
#define LATTICE_IO_CHECKSUM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lattice::io {

// The checksum of bytes that come piece by piece; how they are divided does not matter. Any change within 8
// aligned bytes changes the checksum, because each step is a bijection of the word and of the lane.
class ChecksumStream {
 public:
  explicit ChecksumStream(uint64_t seed = 0);
  void Update(std::span<const std::byte> data);
  // The checksum of everything so far; may be called at any time.
  uint64_t value() const;

 private:
  static constexpr size_t kLanes = 4;
  static constexpr size_t kStripe = kLanes * sizeof(uint64_t);
  void Mix(const std::byte* stripe);

  uint64_t seed_;
  std::array<uint64_t, kLanes> lanes_;
  std::array<std::byte, kStripe> pending_{};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

uint64_t Checksum(std::span<const std::byte> data, uint64_t seed = 0);

inline uint64_t Checksum(std::string_view text, uint64_t seed = 0) {
  return Checksum(std::as_bytes(std::span(text)), seed);
}

}  // namespace lattice::io

#endif  // LATTICE_IO_CHECKSUM_H_
