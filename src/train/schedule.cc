#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lattice::train {

double LearningRate(const model::TrainConfig& config, int64_t step) {
  if (step < config.warmup)
    return config.lr * static_cast<double>(step + 1) / static_cast<double>(config.warmup);
  const int64_t last = config.steps - 1;
  const double part = last <= config.warmup ? 1.0
                                            : std::min(1.0, static_cast<double>(step - config.warmup) /
                                                                static_cast<double>(last - config.warmup));
  const double low = std::min(config.min_lr, config.lr);
  return low + 0.5 * (config.lr - low) * (1 + std::cos(std::numbers::pi * part));
}

}  // namespace lattice::train
