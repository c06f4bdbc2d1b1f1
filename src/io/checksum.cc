// The checksum: four independent 64-bit lanes over stripes of 32 bytes, combined at the end.
#include "io/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/byte_order.h"

namespace lattice::io {
namespace {

constexpr uint64_t kOdd1 = 0x9e3779b97f4a7c15;
constexpr uint64_t kOdd2 = 0xc2b2ae3d27d4eb4f;

// A bijection that spreads every bit over the whole word.
uint64_t Scramble(uint64_t value) {
  value = (value ^ (value >> 32)) * kOdd1;
  value = (value ^ (value >> 29)) * kOdd2;
  return value ^ (value >> 32);
}

}  // namespace

ChecksumStream::ChecksumStream(uint64_t seed) : seed_(seed) {
  for (size_t i = 0; i < kLanes; ++i) lanes_[i] = Scramble(seed + (i + 1) * kOdd1);
}

void ChecksumStream::Mix(const std::byte* stripe) {
  std::array<uint64_t, kLanes> words;
  std::memcpy(words.data(), stripe, kStripe);
  for (size_t i = 0; i < kLanes; ++i) lanes_[i] = std::rotl(lanes_[i] ^ (words[i] * kOdd2), 29) * kOdd1;
}

void ChecksumStream::Update(std::span<const std::byte> data) {
  total_ += data.size();
  if (pending_size_ > 0) {
    const size_t take = std::min(data.size(), kStripe - pending_size_);
    std::memcpy(pending_.data() + pending_size_, data.data(), take);
    pending_size_ += take;
    data = data.subspan(take);
    if (pending_size_ < kStripe) return;
    Mix(pending_.data());
    pending_size_ = 0;
  }
  while (data.size() >= kStripe) {
    Mix(data.data());
    data = data.subspan(kStripe);
  }
  if (!data.empty()) std::memcpy(pending_.data(), data.data(), data.size());
  pending_size_ = data.size();
}

uint64_t ChecksumStream::value() const {
  ChecksumStream last = *this;
  if (pending_size_ > 0) {
    std::memset(last.pending_.data() + pending_size_, 0, kStripe - pending_size_);
    last.Mix(last.pending_.data());
  }
  // The size distinguishes a short last stripe from one that ends with zeros.
  uint64_t result = Scramble(total_ ^ seed_);
  for (const uint64_t lane : last.lanes_) result = Scramble(result * kOdd1 ^ lane);
  return result;
}

uint64_t Checksum(std::span<const std::byte> data, uint64_t seed) {
  ChecksumStream stream(seed);
  stream.Update(data);
  return stream.value();
}

}  // namespace lattice::io
