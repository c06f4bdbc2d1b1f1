// The choice of the next token.
#ifndef LATTICE_CLI_SAMPLER_H_
#define LATTICE_CLI_SAMPLER_H_

#include <cstdint>
#include <span>

namespace lattice::cli {

struct SamplerOptions {
  double temperature = 0.8;  // 0: always the most likely
  int64_t top_k = 0;         // only the k most likely; 0: all
  double top_p = 0.95;       // only the most likely that together have this probability; 1: all
};

// The id that `uniform` in [0, 1) picks; a pure function of its arguments. Ids of equal logits count in their
// order. Throws Error when a logit is not a number.
int32_t Sample(std::span<const float> logits, const SamplerOptions& options, double uniform);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_SAMPLER_H_
