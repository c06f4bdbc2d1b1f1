#include "reproduce/power_fit.h"

#include <cmath>
#include <vector>

namespace lattice::reproduce {
namespace {

constexpr size_t kLeastSizes = 3;

struct Line {
  double slope = 0, offset = 0;
};

Line LeastSquares(const std::vector<std::pair<double, double>>& points) {
  const auto n = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : points) mean_x += x / n, mean_y += y / n;
  double above = 0, below = 0;
  for (const auto& [x, y] : points) {
    above += (x - mean_x) * (y - mean_y);
    below += (x - mean_x) * (x - mean_x);
  }
  const double slope = above / below;
  return {slope, mean_y - slope * mean_x};
}

// Logarithms of size and loss with one seed; empty when a point is missing, diverged, or at a perplexity of 1.
std::vector<std::pair<double, double>> LogsOf(std::span<const FitPoint> points, int64_t seed) {
  std::vector<std::pair<double, double>> out;
  for (const FitPoint& point : points) {
    const auto found = point.perplexity.find(seed);
    if (found == point.perplexity.end() || !(found->second > 1) || !std::isfinite(found->second)) return {};
    out.emplace_back(std::log(point.size), std::log(std::log(found->second)));
  }
  return out;
}

}  // namespace

std::optional<PowerFit> FitPowerLaw(std::span<const FitPoint> points, double size) {
  if (points.size() < kLeastSizes) return std::nullopt;
  std::vector<double> exponents, perplexities;
  for (const auto& [seed, unused] : points[0].perplexity) {
    const auto logs = LogsOf(points, seed);
    if (logs.empty()) continue;
    const Line line = LeastSquares(logs);
    exponents.push_back(-line.slope);
    perplexities.push_back(std::exp(std::exp(line.offset + line.slope * std::log(size))));
  }
  if (exponents.empty()) return std::nullopt;
  return PowerFit{MeanOfDifferences(exponents), MeanOfDifferences(perplexities)};
}

}  // namespace lattice::reproduce
