#include "data/checksum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace lattice::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kOdd1 = 0x9e3779b97f4a7c15;
constexpr uint64_t kOdd2 = 0xc2b2ae3d27d4eb4f;
constexpr size_t kLanes = 4;
constexpr size_t kStripe = kLanes * sizeof(uint64_t);

uint64_t Mix(uint64_t lane, uint64_t word) { return std::rotl(lane ^ (word * kOdd2), 29) * kOdd1; }

uint64_t Scramble(uint64_t value) {
  value = (value ^ (value >> 32)) * kOdd1;
  value = (value ^ (value >> 29)) * kOdd2;
  return value ^ (value >> 32);
}

}  // namespace

uint64_t Checksum(std::span<const std::byte> data, uint64_t seed) {
  std::array<uint64_t, kLanes> lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = Scramble(seed + (i + 1) * kOdd1);
  std::array<uint64_t, kLanes> words;
  for (size_t at = 0; at < data.size(); at += kStripe) {
    if (data.size() - at < kStripe) words = {};
    std::memcpy(words.data(), data.data() + at, std::min(kStripe, data.size() - at));
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = Mix(lanes[i], words[i]);
  }
  // The size tells a short last stripe from one of zeros.
  uint64_t result = Scramble(data.size() ^ seed);
  for (const uint64_t lane : lanes) result = Scramble(result * kOdd1 ^ lane);
  return result;
}

}  // namespace lattice::data
