// Sampling of the next token from logits.
#ifndef LATTICE_RUNTIME_SAMPLER_H_
#define LATTICE_RUNTIME_SAMPLER_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"

namespace lattice::runtime {

struct SamplerOptions {
  double temperature = 0.8;        // 0: greedy
  int64_t top_k = 0;               // only the k most likely tokens; 0: all
  double top_p = 0.95;             // only the most likely tokens that together have this probability; 1: all
  double min_p = 0;                // only tokens with this fraction of the most likely one's probability
  double repetition_penalty = 1;   // positive logits of recent tokens are divided by it, negative multiplied
  int64_t repetition_window = 64;  // how many of the last tokens count as recent
  // Subtracted from the logits of tokens that were sampled before: once for each time, and once at all.
  double frequency_penalty = 0, presence_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // added to the logits of these ids
  uint64_t seed = 0;
};

// Throws Error that names the option out of range.
void CheckOptions(const SamplerOptions& options);

// The id that a uniform random number in [0, 1) selects; a pure function of its arguments. Ids with equal
// logits are ranked by id. Does not apply the repetition penalty. Throws Error when a logit is NaN.
int32_t Sample(std::span<const float> logits, const SamplerOptions& options, double uniform);

// The logits after the repetition penalty for the ids in `recent`: `logits` itself where there is none, else
// `scratch`.
std::span<const float> Penalized(std::span<const float> logits, const SamplerOptions& options,
                                 std::span<const int32_t> recent, std::vector<float>& scratch);

struct TokenLogProb {
  int32_t id = 0;
  double logprob = 0;  // natural logarithm of the model's probability, before temperature and truncation
};

// Of one id, and of the `count` most likely, in descending order.
double LogProb(std::span<const float> logits, int32_t id);
std::vector<TokenLogProb> TopLogProbs(std::span<const float> logits, int64_t count);

// Adds ids to the recent tokens, of which the last `window` are kept.
void KeepRecent(std::span<const int32_t> ids, int64_t window, std::vector<int32_t>& recent);

// Samples the tokens of one text. The n-th choice depends only on the logits, the options, the tokens before
// it and n.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // Adds ids to the recent tokens of the repetition penalty; call it with the prompt.
  void Accept(std::span<const int32_t> ids);
  // Samples an id and adds it to the recent tokens. `allowed`, where it is given, tells for each id whether it may
  // be sampled; one must be.
  int32_t Next(std::span<const float> logits, const std::vector<bool>* allowed = nullptr);

 private:
  std::span<const float> Adjusted(std::span<const float> logits, const std::vector<bool>* allowed);

  SamplerOptions options_;
  Random random_;
  uint64_t drawn_ = 0;
  std::vector<int32_t> recent_;
  std::unordered_map<int32_t, int64_t> sampled_;  // how often
  std::vector<float> penalized_, adjusted_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_SAMPLER_H_
