// Detects loss spikes: losses far above the recent ones, from a bad batch or from training that diverges.
#ifndef LATTICE_TRAIN_SPIKES_H_
#define LATTICE_TRAIN_SPIKES_H_

#include <cstdint>

namespace lattice::train {

// Exponential moving mean and variance of the losses. Saved in checkpoints, so that a resumed run makes the
// same decisions as an uninterrupted one.
struct LossStatistics {
  double mean = 0;
  double variance = 0;
  int64_t count = 0;

  // Adds a finite loss.
  void Observe(double loss);

  // How many standard deviations `loss` is above the mean; 0 until there are enough losses. The deviation is
  // taken as at least 2 % of the mean, so that small changes of a flat loss do not count as spikes.
  double ZScore(double loss) const;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SPIKES_H_
