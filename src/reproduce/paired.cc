// The percentile bootstrap of paired differences.
#include "reproduce/paired.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace lattice::reproduce {
namespace {

constexpr size_t kSamples = 9999;

// The `part` quantile of sorted values.
double Quantile(std::span<const double> sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size()))];
}

}  // namespace

PairedMean MeanOfDifferences(std::span<const double> differences) {
  PairedMean out{.pairs = differences.size()};
  if (differences.empty()) return out;
  const auto count = static_cast<double>(differences.size());
  out.mean = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  const Random random(0, differences.size());
  std::vector<double> means(kSamples);
  uint64_t draw = 0;
  for (double& mean : means) {
    for (size_t i = 0; i < differences.size(); ++i)
      mean += differences[random.Below(differences.size(), draw++)] / count;
  }
  std::sort(means.begin(), means.end());
  out.low = Quantile(means, 0.025);
  out.high = Quantile(means, 0.975);
  return out;
}

Finding FindingOf(const PairedMean& mean) {
  if (!mean.Decided()) return Finding::kUndecided;
  return mean.low > 0 ? Finding::kHolds : Finding::kFails;
}

std::string_view Name(Finding finding) {
  switch (finding) {
    case Finding::kUndecided:
      return "not decided";
    case Finding::kHolds:
      return "holds";
    case Finding::kFails:
      return "fails";
  }
  return "";
}

}  // namespace lattice::reproduce
