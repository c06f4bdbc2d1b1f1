#include "cli/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "io/testing.h"

namespace lattice::cli {
namespace {

// How often each id comes when uniform runs over [0, 1).
std::map<int32_t, double> Frequencies(std::span<const float> logits, const SamplerOptions& options) {
  constexpr int kDraws = 10000;
  std::map<int32_t, double> found;
  for (int i = 0; i < kDraws; ++i) found[Sample(logits, options, (i + 0.5) / kDraws)] += 1.0 / kDraws;
  return found;
}

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.5f), std::log(0.15f), std::log(0.25f)};

TEST(Sampler, FollowsTheProbabilities) {
  const auto found = Frequencies(kLogits, {.temperature = 1, .top_p = 1});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_NEAR(found.at(0), 0.1, 2e-4);
  EXPECT_NEAR(found.at(1), 0.5, 2e-4);
  EXPECT_NEAR(found.at(2), 0.15, 2e-4);
  EXPECT_NEAR(found.at(3), 0.25, 2e-4);
}

TEST(Sampler, TemperatureSharpens) {
  const auto found = Frequencies(kLogits, {.temperature = 0.5, .top_p = 1});
  const double total = 0.01 + 0.25 + 0.0225 + 0.0625;
  EXPECT_NEAR(found.at(1), 0.25 / total, 2e-4);
  EXPECT_NEAR(found.at(0), 0.01 / total, 2e-4);
  EXPECT_EQ(Frequencies(kLogits, {.temperature = 0}).at(1),
            Frequencies(kLogits, {.temperature = 0}).begin()->second);
}

TEST(Sampler, TopKAndTopPCutTheTail) {
  const auto two = Frequencies(kLogits, {.temperature = 1, .top_k = 2, .top_p = 1});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(1), 2.0 / 3, 2e-4);
  const auto nucleus = Frequencies(kLogits, {.temperature = 1, .top_p = 0.8});
  ASSERT_EQ(nucleus.size(), 3u);
  EXPECT_NEAR(nucleus.at(2), 0.15 / 0.9, 2e-4);
  EXPECT_EQ(Frequencies(kLogits, {.temperature = 1, .top_p = 1e-9}).size(), 1u);
}

TEST(Sampler, TiesGoByIdAndEdgesStayInRange) {
  const std::array<float, 3> equal = {1, 1, 1};
  EXPECT_EQ(Sample(equal, {.temperature = 0}, 0.9), 0);
  EXPECT_EQ(Sample(equal, {.temperature = 1, .top_p = 1}, 0), 0);
  EXPECT_EQ(Sample(equal, {.temperature = 1, .top_p = 1}, std::nextafter(1.0, 0.0)), 2);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Sample(std::array<float, 3>{-infinity, 0, -infinity}, {.temperature = 1, .top_p = 1}, 0.7), 1);
}

TEST(Sampler, RefusesWhatIsNotANumber) {
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sample(std::array<float, 2>{0, NAN}, {}, 0.5); }), {"not a number"}));
}

}  // namespace
}  // namespace lattice::cli
