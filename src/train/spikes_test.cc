#include "train/spikes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace lattice::train {
namespace {

TEST(LossStatistics, AreThoseOfTheSampleAtFirst) {
  LossStatistics statistics;
  for (const double loss : {1.0, 2.0, 4.0, 5.0}) statistics.Observe(loss);
  EXPECT_DOUBLE_EQ(statistics.mean, 3);
  EXPECT_DOUBLE_EQ(statistics.variance, 2.5);
}

TEST(LossStatistics, CallNothingASpikeBeforeTheyKnow) {
  LossStatistics statistics;
  for (int i = 0; i < 19; ++i) statistics.Observe(2);
  EXPECT_EQ(statistics.ZScore(1000), 0);
  statistics.Observe(2);
  EXPECT_DOUBLE_EQ(statistics.ZScore(2.4), 10) << "the least deviation is 2 % of the mean";
}

TEST(LossStatistics, TellSpikesFromNoise) {
  const Random random(3);
  LossStatistics statistics;
  double largest = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    const double loss = 2 + 3 * std::exp(-static_cast<double>(i) / 500) + 0.1 * random.Normal(i);
    largest = std::max(largest, statistics.ZScore(loss));
    statistics.Observe(loss);
  }
  EXPECT_LT(largest, 7) << "a falling, noisy loss has no spike in 5,000 steps";
  EXPECT_GT(statistics.ZScore(3), 6);
  EXPECT_LT(statistics.ZScore(1), 0) << "a low loss is none either";
}

}  // namespace
}  // namespace lattice::train
