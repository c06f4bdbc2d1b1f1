// Samples a token from logits: temperature, top-k, top-p, min-p and the repetition penalty.
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/functions.h"

namespace lattice::runtime {
namespace {

struct Candidate {
  int32_t id;
  float logit;
};

bool MoreLikely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

std::vector<Candidate> CandidatesOf(std::span<const float> logits) {
  Check(!logits.empty(), "[generate] there are no tokens to choose from");
  std::vector<Candidate> all(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    Check(!std::isnan(logits[i]), "[generate] the model's output is not a number");
    all[i] = {static_cast<int32_t>(i), logits[i]};
  }
  return all;
}

// Candidates by descending probability, sorted lazily: a choice rarely looks at more than a few of 32,000
// ids.
class Ranking {
 public:
  Ranking(std::span<const float> logits, const SamplerOptions& options)
      : all_(CandidatesOf(logits)), temperature_(options.temperature) {
    if (options.top_k > 0 && static_cast<size_t>(options.top_k) < all_.size()) {
      Sort(static_cast<size_t>(options.top_k));
      all_.resize(static_cast<size_t>(options.top_k));
    }
    Sort(1);
  }

  size_t size() const { return all_.size(); }
  int32_t Id(size_t rank) {
    Sort(rank + 1);
    return all_[rank].id;
  }
  // The probability relative to that of the most likely candidate.
  double Weight(size_t rank) {
    Sort(rank + 1);
    return WeightOf(all_[rank]);
  }
  double TotalWeight() const {
    double total = 0;
    for (const Candidate& candidate : all_) total += WeightOf(candidate);
    return total;
  }

 private:
  double WeightOf(const Candidate& candidate) const {
    return Exp((static_cast<double>(candidate.logit) - all_[0].logit) / temperature_);
  }
  void Sort(size_t count) {
    if (count <= sorted_) return;
    const size_t end = std::min(all_.size(), std::max({count, size_t{64}, 4 * sorted_}));
    const auto at = [&](size_t i) { return all_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::partial_sort(at(sorted_), at(end), all_.end(), MoreLikely);
    sorted_ = end;
  }

  std::vector<Candidate> all_;
  size_t sorted_ = 0;
  double temperature_;
};

double LogOfSum(std::span<const float> logits) {
  Check(!logits.empty(), "[generate] there are no logits");
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += Exp(logit - top);
  return top + Log(sum);
}

}  // namespace

void CheckOptions(const SamplerOptions& o) {
  Check(o.temperature >= 0 && std::isfinite(o.temperature), "[generate] temperature is ", o.temperature,
        "; expected 0 (the most likely token) or more");
  Check(o.top_k >= 0, "[generate] top_k is ", o.top_k, "; expected 0 (all) or more");
  Check(o.top_p >= 0 && o.top_p <= 1, "[generate] top_p is ", o.top_p, "; expected 0 to 1");
  Check(o.min_p >= 0 && o.min_p <= 1, "[generate] min_p is ", o.min_p, "; expected 0 to 1");
  Check(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "[generate] repetition_penalty is ",
        o.repetition_penalty, "; expected more than 0, 1 for none");
  for (const auto& [name, value] : {std::pair{"frequency_penalty", o.frequency_penalty},
                                    std::pair{"presence_penalty", o.presence_penalty}})
    Check(value >= -2 && value <= 2, "[generate] ", name, " is ", value, "; expected -2 to 2, 0 for none");
  Check(o.repetition_window >= 0, "[generate] repetition_window is ", o.repetition_window,
        "; expected 0 or more");
}

int32_t Sample(std::span<const float> logits, const SamplerOptions& options, double uniform) {
  if (options.temperature == 0) {
    const std::vector<Candidate> all = CandidatesOf(logits);
    return std::min_element(all.begin(), all.end(), MoreLikely)->id;
  }
  Ranking ranking(logits, options);
  const double total = ranking.TotalWeight();
  double kept = total;
  size_t count = ranking.size();
  if (options.top_p < 1 || options.min_p > 0) {
    for (kept = 0, count = 0; count < ranking.size(); ++count) {
      const double weight = ranking.Weight(count);
      if (count > 0 && (kept >= options.top_p * total || weight < options.min_p)) break;
      kept += weight;
    }
  }
  double left = uniform * kept;
  for (size_t i = 0; i + 1 < count; ++i) {
    left -= ranking.Weight(i);
    if (left < 0) return ranking.Id(i);
  }
  return ranking.Id(count - 1);
}

std::span<const float> Penalized(std::span<const float> logits, const SamplerOptions& options,
                                 std::span<const int32_t> recent, std::vector<float>& scratch) {
  if (options.repetition_penalty == 1) return logits;
  scratch.assign(logits.begin(), logits.end());
  for (const int32_t id : std::set<int32_t>(recent.begin(), recent.end())) {
    if (id < 0 || static_cast<size_t>(id) >= scratch.size()) continue;
    float& logit = scratch[static_cast<size_t>(id)];
    const auto penalty = static_cast<float>(options.repetition_penalty);
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
  return scratch;
}

double LogProb(std::span<const float> logits, int32_t id) {
  Check(id >= 0 && static_cast<size_t>(id) < logits.size(), "[generate] there is no token ", id);
  return logits[static_cast<size_t>(id)] - LogOfSum(logits);
}

std::vector<TokenLogProb> TopLogProbs(std::span<const float> logits, int64_t count) {
  Check(count >= 0, "[generate] ", count, " log-probabilities; expected 0 or more");
  std::vector<Candidate> all = CandidatesOf(logits);
  const auto end = all.begin() + std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(all.size()));
  std::partial_sort(all.begin(), end, all.end(), MoreLikely);
  const double log_sum = LogOfSum(logits);
  std::vector<TokenLogProb> top;
  for (auto at = all.begin(); at != end; ++at) top.push_back({at->id, at->logit - log_sum});
  return top;
}

void KeepRecent(std::span<const int32_t> ids, int64_t window, std::vector<int32_t>& recent) {
  const auto most = static_cast<size_t>(window);
  const std::span<const int32_t> last = ids.last(std::min(most, ids.size()));
  recent.insert(recent.end(), last.begin(), last.end());
  if (recent.size() > most) recent.erase(recent.begin(), recent.end() - static_cast<std::ptrdiff_t>(most));
}

Sampler::Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {
  CheckOptions(options);
}

void Sampler::Accept(std::span<const int32_t> ids) { KeepRecent(ids, options_.repetition_window, recent_); }

std::span<const float> Sampler::Adjusted(std::span<const float> logits, const std::vector<bool>* allowed) {
  const bool penalties = options_.frequency_penalty != 0 || options_.presence_penalty != 0;
  if (!penalties && options_.logit_bias.empty() && allowed == nullptr) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  const auto add = [&](int32_t id, double amount) {
    if (id >= 0 && static_cast<size_t>(id) < adjusted_.size())
      adjusted_[static_cast<size_t>(id)] += static_cast<float>(amount);
  };
  if (penalties) {
    for (const auto& [id, times] : sampled_)
      add(id, -options_.presence_penalty - options_.frequency_penalty * static_cast<double>(times));
  }
  for (const auto& [id, amount] : options_.logit_bias) add(id, amount);
  if (allowed == nullptr) return adjusted_;
  bool any = false;
  for (size_t i = 0; i < adjusted_.size(); ++i) {
    const bool may = i < allowed->size() && (*allowed)[i];
    any = any || may;
    if (!may) adjusted_[i] = -std::numeric_limits<float>::infinity();
  }
  Check(any, "[generate] none of the tokens may be sampled");
  return adjusted_;
}

int32_t Sampler::Next(std::span<const float> logits, const std::vector<bool>* allowed) {
  logits = Adjusted(Penalized(logits, options_, recent_, penalized_), allowed);
  const int32_t id = Sample(logits, options_, random_.Uniform(drawn_++));
  Accept({&id, 1});
  if (options_.frequency_penalty != 0 || options_.presence_penalty != 0) ++sampled_[id];
  return id;
}

}  // namespace lattice::runtime
