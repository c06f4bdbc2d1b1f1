// Counter-based random numbers: every value is a pure function of (seed, stream, index).
//
// Nothing is stored and nothing advances, so any value can be had in any order, from any thread, and again
// after a restart. Use one stream per purpose (a tensor's name, an epoch's shuffle) and the index for the
// position in it. The generator is Philox-4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3").
#ifndef LATTICE_BASE_RANDOM_H_
#define LATTICE_BASE_RANDOM_H_

#include <array>
#include <cstdint>
#include <span>

namespace lattice {

// One Philox-4x32-10 block.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // The 128 bits at `index`.
  std::array<uint32_t, 4> Block(uint64_t index) const;
  // 64 uniform bits.
  uint64_t Bits(uint64_t index) const;
  // Uniform in [0, 1), 53 bits.
  double Uniform(uint64_t index) const;
  // Standard normal.
  double Normal(uint64_t index) const;
  // Uniform in [0, n); the bias is below n / 2^64. Throws Error when n is 0.
  uint64_t Below(uint64_t n, uint64_t index) const;

  // Fill `out` faster than the calls above (four values per block), with values of their own: out[i] depends
  // on (seed, stream, i) only, not on the length of out.
  void FillUniform(std::span<float> out, float low, float high) const;
  void FillNormal(std::span<float> out, float mean, float deviation) const;

 private:
  uint64_t seed_;
  uint64_t stream_;
};

}  // namespace lattice

#endif  // LATTICE_BASE_RANDOM_H_
