// Notices losses that are far above what they have been lately: a bad batch, or training that is coming
// apart.
#ifndef LATTICE_TRAIN_SPIKES_H_
#define LATTICE_TRAIN_SPIKES_H_

#include <cstdint>

namespace lattice::train {

// Mean and variance of the recent losses, the newest weighing most. Part of a checkpoint, so that a resumed
// run decides as an uninterrupted one.
struct LossStatistics {
  double mean = 0;
  double variance = 0;
  int64_t count = 0;

  // Takes a finite loss in.
  void Observe(double loss);

  // How many standard deviations `loss` is above the mean; 0 until there are enough losses to tell. The
  // deviation is taken as at least 2 % of the mean: a loss that hardly moves is no reason to panic.
  double ZScore(double loss) const;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SPIKES_H_
