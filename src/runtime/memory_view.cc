// Effective rank and pairwise slot similarity of one head's memory.
#include "runtime/memory_view.h"

#include <cmath>

#include "base/functions.h"

namespace lattice::runtime {

MemoryView ViewMemory(std::span<const float> state, int64_t slots, int64_t width) {
  MemoryView out;
  out.effective_rank = EffectiveNumber(SingularValues(state, slots, width));
  const auto m = static_cast<size_t>(slots), d = static_cast<size_t>(width);
  std::vector<double> lengths;
  for (size_t i = 0; i < m; ++i) lengths.push_back(std::sqrt(SquaredLength(state.subspan(i * d, d))));
  out.lengths.assign(lengths.begin(), lengths.end());
  out.cosines.resize(m * m);
  double sum = 0;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < m; ++j) {
      double dot = 0;
      for (size_t c = 0; c < d; ++c) dot += double{state[i * d + c]} * state[j * d + c];
      const double size = lengths[i] * lengths[j];
      const double cosine = i == j ? 1 : size > 0 ? dot / size : 0;
      out.cosines[i * m + j] = static_cast<float>(cosine);
      if (i != j) sum += std::abs(cosine);
    }
  }
  if (m > 1) out.similarity = sum / static_cast<double>(m * (m - 1));
  return out;
}

double SquaredLength(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += double{value} * value;
  return sum;
}

double EffectiveNumber(std::span<const double> weights) {
  double sum = 0, entropy = 0;
  for (const double weight : weights) sum += weight;
  if (sum <= 0) return 0;
  for (const double weight : weights) {
    if (weight > 0) entropy -= weight / sum * Log(weight / sum);
  }
  return Exp(entropy);
}

}  // namespace lattice::runtime
