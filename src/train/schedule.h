// The learning rate of a step.
#ifndef LATTICE_TRAIN_SCHEDULE_H_
#define LATTICE_TRAIN_SCHEDULE_H_

#include <cstdint>

#include "model/config.h"

namespace lattice::train {

// Linear warm-up over `warmup` steps to `lr`, then half a cosine that reaches `min_lr` (never more than `lr`)
// at the last step. `step` counts from 0. A pure function, so a resumed run needs no state for it.
double LearningRate(const model::TrainConfig& config, int64_t step);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SCHEDULE_H_
