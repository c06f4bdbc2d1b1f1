// The choice of the next token.
#ifndef LATTICE_RUNTIME_SAMPLER_H_
#define LATTICE_RUNTIME_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace lattice::runtime {

struct SamplerOptions {
  double temperature = 0.8;       // 0: always the most likely
  int64_t top_k = 0;              // only the k most likely; 0: all
  double top_p = 0.95;            // only the most likely that together have this probability; 1: all
  double min_p = 0;               // only those with this share of the most likely one's probability
  double repetition_penalty = 1;  // recent ids: positive logits are divided by it, negative multiplied
  int64_t repetition_window = 64;
  uint64_t seed = 0;
};

// Throws Error that names the option out of range.
void CheckOptions(const SamplerOptions& options);

// The id that `uniform` in [0, 1) picks; a pure function of its arguments. Ids of equal logits count in their
// order. Penalties are not applied here. Throws Error when a logit is not a number.
int32_t Sample(std::span<const float> logits, const SamplerOptions& options, double uniform);

struct TokenLogProb {
  int32_t id = 0;
  double logprob = 0;  // natural logarithm of the model's own probability, before temperature and cuts
};

// Of one id, and of the `count` most likely, in descending order.
double LogProb(std::span<const float> logits, int32_t id);
std::vector<TokenLogProb> TopLogProbs(std::span<const float> logits, int64_t count);

// Sample for one text: the n-th choice is a function of (options, what came before, n).
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // Ids that count as recent for the repetition penalty without having been chosen: the prompt.
  void Accept(std::span<const int32_t> ids);
  // Chooses and remembers.
  int32_t Next(std::span<const float> logits);

 private:
  SamplerOptions options_;
  Random random_;
  uint64_t drawn_ = 0;
  std::vector<int32_t> recent_;
  std::vector<float> penalized_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_SAMPLER_H_
