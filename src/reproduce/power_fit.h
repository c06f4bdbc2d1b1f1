// A power law through the losses of models of different sizes, and what it says about a size that was not run.
#ifndef LATTICE_REPRODUCE_POWER_FIT_H_
#define LATTICE_REPRODUCE_POWER_FIT_H_

#include <map>
#include <optional>
#include <span>

#include "reproduce/paired.h"

namespace lattice::reproduce {

// The perplexities at one size, by seed.
struct FitPoint {
  double size = 0;
  std::map<int64_t, double> perplexity;
};

struct PowerFit {
  PairedMean exponent;    // c of loss = a size^-c, the loss being the logarithm of the perplexity
  PairedMean perplexity;  // at the size asked for
};

// Fits each seed that has all points by least squares of the logarithms; means and intervals are over seeds. An
// extrapolation: the interval knows the spread of the seeds, not whether the law still holds at that size.
// Nothing with fewer than three sizes, or without a seed that has all of them.
std::optional<PowerFit> FitPowerLaw(std::span<const FitPoint> points, double size);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_POWER_FIT_H_
