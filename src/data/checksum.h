// A fast 64-bit checksum of file content: it notices accidents (flipped bits, truncation, swapped blocks),
// not adversaries. The values are part of the format of token files and do not change.
#ifndef LATTICE_DATA_CHECKSUM_H_
#define LATTICE_DATA_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lattice::data {

// Any change confined to 8 aligned bytes changes the result: each step is a bijection of the word and of the
// lane.
uint64_t Checksum(std::span<const std::byte> data, uint64_t seed = 0);

inline uint64_t Checksum(std::string_view text, uint64_t seed = 0) {
  return Checksum(std::as_bytes(std::span(text)), seed);
}

}  // namespace lattice::data

#endif  // LATTICE_DATA_CHECKSUM_H_
