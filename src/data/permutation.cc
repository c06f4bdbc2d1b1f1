#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace lattice::data {
namespace {

constexpr uint64_t kRounds = 6;
constexpr int64_t kLargest = int64_t{1} << 62;

}  // namespace

Permutation::Permutation(int64_t n, uint64_t seed, uint64_t stream)
    : n_(static_cast<uint64_t>(n)), half_bits_(0), random_(seed, stream) {
  Check(n >= 1 && n <= kLargest, "[data] cannot permute ", n, " elements");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(n_ - 1)) + 1) / 2);
}

uint64_t Permutation::Rounds(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    // A half has at most 31 bits, so every (round, half) has a unique counter.
    const uint64_t next = left ^ (random_.Bits(round << 32 | right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t i) const {
  Check(i >= 0 && static_cast<uint64_t>(i) < n_, "[data] ", i, " is not below ", n_);
  // Cycle walking: the network permutes a set at most four times as large, so following the cycle of i until
  // it returns to 0..n-1 permutes that range.
  uint64_t value = static_cast<uint64_t>(i);
  do {
    value = Rounds(value);
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

}  // namespace lattice::data
