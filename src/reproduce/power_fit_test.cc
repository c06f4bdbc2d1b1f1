#include "reproduce/power_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lattice::reproduce {
namespace {

// loss = a size^-0.1
double PerplexityAt(double a, double size) { return std::exp(a * std::pow(size, -0.1)); }

std::vector<FitPoint> Points(double a, double b) {
  std::vector<FitPoint> out;
  for (const double size : {0.5, 2.0, 8.0})
    out.push_back({size, {{0, PerplexityAt(a, size)}, {1, PerplexityAt(b, size)}}});
  return out;
}

TEST(PowerFit, FindsTheLawItWasMadeFrom) {
  const auto fit = FitPowerLaw(Points(4, 4.2), 85);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->exponent.pairs, 2u);
  EXPECT_NEAR(fit->exponent.mean, 0.1, 1e-12);
  EXPECT_NEAR(fit->perplexity.mean, (PerplexityAt(4, 85) + PerplexityAt(4.2, 85)) / 2, 1e-9);
  EXPECT_LT(fit->perplexity.low, fit->perplexity.mean);
  EXPECT_GT(fit->perplexity.high, fit->perplexity.mean);
}

TEST(PowerFit, LeavesOutSeedsThatDivergedOrAreMissing) {
  std::vector<FitPoint> points = Points(4, 4.2);
  points[1].perplexity[1] = std::nan("");
  EXPECT_EQ(FitPowerLaw(points, 85)->exponent.pairs, 1u);
  points[2].perplexity.erase(0);
  EXPECT_FALSE(FitPowerLaw(points, 85).has_value());
}

TEST(PowerFit, NeedsThreeSizes) {
  std::vector<FitPoint> points = Points(4, 4.2);
  points.pop_back();
  EXPECT_FALSE(FitPowerLaw(points, 85).has_value());
  EXPECT_FALSE(FitPowerLaw({}, 85).has_value());
}

}  // namespace
}  // namespace lattice::reproduce
