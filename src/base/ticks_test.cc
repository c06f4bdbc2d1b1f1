#include "base/ticks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lattice {
namespace {

using Values = std::vector<double>;

// 1, 2 or 5 in front of zeros.
bool IsRound(double value) {
  const double first = value / std::pow(10, std::floor(std::log10(value) + 1e-9));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (std::abs(first - digit) < 1e-6) return true;
  }
  return false;
}

TEST(Ticks, AreMultiplesOfARoundStep) {
  EXPECT_EQ(LinearTicks(0, 10, 5), (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(LinearTicks(3, 1180, 5).size(), 2u);
  EXPECT_EQ(LinearTicks(-0.04, 0.04, 4), (Values{-0.04, -0.02, 0, 0.02, 0.04}));
  for (const double rough : {0.0031, 0.7, 1.0, 3.3, 47.0, 9999.0}) {
    EXPECT_TRUE(IsRound(RoundStep(rough))) << rough;
    EXPECT_GE(RoundStep(rough), rough);
  }
}

TEST(Ticks, OfALogarithmicAxisAreRoundThemselves) {
  EXPECT_EQ(LogTicks(0.3, 12, 9), (Values{0.5, 1, 2, 5, 10}));
  EXPECT_EQ(LogTicks(1, 1000, 6), (Values{1, 10, 100, 1000}));
  EXPECT_EQ(LogTicks(1.2, 1.9, 7), (Values{1.5})) << "no decade: as on a linear axis";
  for (const double high : {7.0, 160.0, 3e5, 1e12}) {
    const Values ticks = LogTicks(0.013, high, 9);
    EXPECT_GE(ticks.size(), 3u) << high;
    EXPECT_LE(ticks.size(), 9u) << high;
    for (const double tick : ticks) EXPECT_TRUE(IsRound(tick)) << tick;
  }
}

}  // namespace
}  // namespace lattice
