#include "eval/metrics.h"

#include <algorithm>
#include <cmath>

#include "eval/python_text.h"

namespace lattice::eval {
namespace {

template <typename Length>
bool GoldIsBest(const Item& item, std::span<const Likelihood> scores, const Length& length) {
  size_t best = 0;
  double best_score = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double score =
        scores[i].log_likelihood / std::max<double>(1, static_cast<double>(length(item.requests[i].choice)));
    if (i == 0 || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return static_cast<int64_t>(best) == item.gold;
}

}  // namespace

Outcome Judge(const Item& item, std::span<const Likelihood> scores) {
  return {
      .acc = GoldIsBest(item, scores, [](const std::string&) { return 1; }),
      .acc_norm = GoldIsBest(item, scores, [](const std::string& choice) { return CodePoints(choice); }),
      .acc_bytes = GoldIsBest(item, scores, [](const std::string& choice) { return choice.size(); }),
  };
}

Mean MeanOf(std::span<const double> values) {
  Mean mean;
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return mean;
  for (const double value : values) mean.value += value;
  mean.value /= n;
  if (values.size() < 2) return mean;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.stderr_ = std::sqrt(squares / (n - 1) / n);
  return mean;
}

}  // namespace lattice::eval
