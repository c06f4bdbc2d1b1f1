// Accuracy and its variants, computed exactly as the evaluation harness does.
#include "eval/outcomes.h"

#include <cmath>

#include "eval/python_text.h"

namespace lattice::eval {
namespace {

// As numpy.argmax: the first of the largest values; the first NaN, if there is one.
size_t ArgMax(std::span<const double> values) {
  size_t best = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return i;
    if (values[i] > values[best]) best = i;
  }
  return best;
}

// Divides as the harness does: an empty choice has the length 0 and the score -inf (NaN for a log-likelihood
// of 0).
template <typename Length>
bool GoldIsBest(const Item& item, std::span<const Likelihood> scores, const Length& length) {
  std::vector<double> values;
  for (size_t i = 0; i < scores.size(); ++i)
    values.push_back(scores[i].log_likelihood / static_cast<double>(length(item.requests[i].choice)));
  return static_cast<int64_t>(ArgMax(values)) == item.gold;
}

}  // namespace

Outcome OutcomeOf(const Item& item, std::span<const Likelihood> scores) {
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
