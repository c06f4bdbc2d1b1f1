#include "train/spikes.h"

#include <algorithm>
#include <cmath>

namespace lattice::train {
namespace {

// The weight of the newest loss, once there are enough. With a smaller weight the steep fall at the
// beginning, and its large deviation, would count for too long.
constexpr double kNewest = 0.1;
constexpr int64_t kEnough = 20;
constexpr double kLeastDeviation = 0.02;

}  // namespace

void LossStatistics::Observe(double loss) {
  ++count;
  const double weight = std::max(kNewest, 1.0 / static_cast<double>(count));
  const double difference = loss - mean;
  mean += weight * difference;
  variance = (1 - weight) * (variance + weight * difference * difference);
}

double LossStatistics::ZScore(double loss) const {
  if (count < kEnough) return 0;
  const double deviation = std::max(std::sqrt(variance), kLeastDeviation * std::abs(mean));
  return deviation > 0 ? (loss - mean) / deviation : 0;
}

}  // namespace lattice::train
