// Philox-4x32-10, and uniform and normal numbers made from its blocks.
#include "base/random.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/error.h"

namespace lattice {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

uint64_t Join(uint32_t low, uint32_t high) { return (uint64_t{high} << 32) | low; }

// Uniform in [0, 1) from the upper 24 bits, so that the float is exact and never rounds up to 1.
float UnitFloat(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Two independent standard normals from two words (Box-Muller); the first is taken in (0, 1] for the
// logarithm.
std::array<float, 2> NormalPair(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0f * std::log(1.0f - UnitFloat(a)));
  const float angle = 2.0f * std::numbers::pi_v<float> * UnitFloat(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::array<uint32_t, 4> Random::Block(uint64_t index) const {
  return Philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                 static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
}

uint64_t Random::Bits(uint64_t index) const {
  const auto block = Block(index);
  return Join(block[0], block[1]);
}

double Random::Uniform(uint64_t index) const { return static_cast<double>(Bits(index) >> 11) * 0x1p-53; }

double Random::Normal(uint64_t index) const {
  const auto block = Block(index);
  const double u = 1.0 - static_cast<double>(Join(block[0], block[1]) >> 11) * 0x1p-53;
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(Join(block[2], block[3]) >> 11) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

uint64_t Random::Below(uint64_t n, uint64_t index) const {
  Check(n > 0, "[random] Below needs a range of at least 1, got 0");
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(Bits(index)) * n) >> 64);
}

void Random::FillUniform(std::span<float> out, float low, float high) const {
  for (size_t i = 0; i < out.size(); i += 4) {
    const auto block = Block(i / 4);
    for (size_t j = 0; j < 4 && i + j < out.size(); ++j) {
      out[i + j] = low + (high - low) * UnitFloat(block[j]);
    }
  }
}

void Random::FillNormal(std::span<float> out, float mean, float deviation) const {
  for (size_t i = 0; i < out.size(); i += 4) {
    const auto block = Block(i / 4);
    const auto first = NormalPair(block[0], block[1]);
    const auto second = NormalPair(block[2], block[3]);
    const std::array<float, 4> values = {first[0], first[1], second[0], second[1]};
    for (size_t j = 0; j < 4 && i + j < out.size(); ++j) out[i + j] = mean + deviation * values[j];
  }
}

}  // namespace lattice
