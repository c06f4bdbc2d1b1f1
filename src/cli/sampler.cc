#include "cli/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace lattice::cli {
namespace {

struct Candidate {
  int32_t id;
  float logit;
};

bool MoreLikely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The most likely first, cut to top_k and to top_p.
std::vector<Candidate> Candidates(std::span<const float> logits, const SamplerOptions& options) {
  std::vector<Candidate> all(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) all[i] = {static_cast<int32_t>(i), logits[i]};
  size_t keep = all.size();
  if (options.temperature == 0) {
    keep = 1;
  } else if (options.top_k > 0) {
    keep = std::min(keep, static_cast<size_t>(options.top_k));
  }
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(keep), all.end(), MoreLikely);
  all.resize(keep);
  return all;
}

}  // namespace

int32_t Sample(std::span<const float> logits, const SamplerOptions& options, double uniform) {
  Check(!logits.empty(), "[generate] there are no tokens to choose from");
  for (const float logit : logits) Check(!std::isnan(logit), "[generate] the model's output is not a number");
  const std::vector<Candidate> candidates = Candidates(logits, options);
  if (candidates.size() == 1) return candidates.front().id;

  std::vector<double> weights(candidates.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] =
        std::exp((static_cast<double>(candidates[i].logit) - candidates[0].logit) / options.temperature);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < options.top_p * total)) kept += weights[count++];

  double left = uniform * kept;
  for (size_t i = 0; i + 1 < count; ++i) {
    left -= weights[i];
    if (left < 0) return candidates[i].id;
  }
  return candidates[count - 1].id;
}

}  // namespace lattice::cli
