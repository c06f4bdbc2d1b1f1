#include "reproduce/paired.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace lattice::reproduce {
namespace {

Finding Of(const std::vector<double>& differences) { return FindingOf(MeanOfDifferences(differences)); }

TEST(Paired, DecidesOnlyWhatTheIntervalExcludes) {
  EXPECT_EQ(Of({0.1, 0.2, 0.15, 0.12, 0.3}), Finding::kHolds);
  EXPECT_EQ(Of({-0.1, -0.2, -0.15, -0.12, -0.3}), Finding::kFails);
  EXPECT_EQ(Of({0.1, -0.2, 0.15, -0.12, 0.3}), Finding::kUndecided);
  EXPECT_EQ(Of({0, 0, 0, 0, 0}), Finding::kUndecided);
  EXPECT_EQ(Of({}), Finding::kUndecided);
}

TEST(Paired, FewPairsDecideNothing) {
  EXPECT_EQ(Of({0.1, 0.2, 0.15}), Finding::kUndecided);
  EXPECT_EQ(Of({0.1, 0.2, 0.15, 0.12}), Finding::kUndecided);
}

TEST(Paired, TheIntervalIsThatOfTheMean) {
  std::vector<double> differences(400);
  const Random random(3);
  for (size_t i = 0; i < differences.size(); ++i) differences[i] = 1 + random.Normal(i);
  const PairedMean mean = MeanOfDifferences(differences);
  EXPECT_NEAR(mean.mean, 1, 0.15);
  // 1.96 standard errors of 1 / sqrt(400) on either side.
  EXPECT_NEAR(mean.mean - mean.low, 0.098, 0.02);
  EXPECT_NEAR(mean.high - mean.mean, 0.098, 0.02);
}

// Without an effect a decision is an error; five pairs may make it in about one case of ten (the percentile
// interval of five values is short), not in more.
TEST(Paired, NoiseIsSeldomDecided) {
  int decided = 0;
  const Random random(4);
  for (uint64_t trial = 0; trial < 200; ++trial) {
    std::vector<double> differences(5);
    for (uint64_t i = 0; i < 5; ++i) differences[i] = random.Normal(5 * trial + i);
    decided += Of(differences) != Finding::kUndecided ? 1 : 0;
  }
  EXPECT_LT(decided, 36);
}

}  // namespace
}  // namespace lattice::reproduce
