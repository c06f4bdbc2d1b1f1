// Paired comparison of two variants: both are trained with the same seeds and compared seed by seed.
#ifndef LATTICE_REPRODUCE_PAIRED_H_
#define LATTICE_REPRODUCE_PAIRED_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace lattice::reproduce {

// Fewer pairs decide nothing: of three differences without an effect, all have the same sign one time in
// four, and their bootstrap interval then excludes zero; of five, one time in sixteen.
inline constexpr size_t kLeastPairs = 5;

// The mean of paired differences and its 95 % interval, by the percentile bootstrap: the 2.5 and 97.5 per
// cent quantiles of the means of 9,999 samples drawn with replacement. The samples are a function of the
// number of pairs, so equal differences give equal bits.
struct PairedMean {
  size_t pairs = 0;
  double mean = 0, low = 0, high = 0;

  // The interval lies on one side of zero, and there are enough pairs to believe it.
  bool Decided() const { return pairs >= kLeastPairs && (low > 0 || high < 0); }
};

// `differences` are finite and may be empty (all zero then).
PairedMean MeanOfDifferences(std::span<const double> differences);

enum class Finding { kUndecided, kHolds, kFails };

// The finding about a claim that the differences are positive.
Finding FindingOf(const PairedMean& mean);

// "not decided", "holds", "fails".
std::string_view Name(Finding finding);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_PAIRED_H_
