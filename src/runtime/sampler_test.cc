#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "io/testing.h"

namespace lattice::runtime {
namespace {

// The frequency of each id when `uniform` runs over [0, 1).
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

TEST(Sampler, MinPCutsTheTail) {
  const auto found = Frequencies(kLogits, {.temperature = 1, .top_p = 1, .min_p = 0.4});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(3), 1.0 / 3, 2e-4);
}

TEST(Sampler, ManyIdsFollowTheProbabilities) {
  // More ids than are sorted at once, with weights that fall slowly, so that every rank is reached.
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[(i * 7) % 1000] = -0.002f * static_cast<float>(i);
  double total = 0, expected = 0;
  for (const float logit : logits) total += std::exp(logit);
  const auto found = Frequencies(logits, {.temperature = 1, .top_p = 1});
  for (const auto& [id, share] : found) {
    EXPECT_NEAR(share, std::exp(logits[static_cast<size_t>(id)]) / total, 2e-4);
    expected += share;
  }
  EXPECT_NEAR(expected, 1, 1e-9);
}

TEST(Sampler, RepetitionIsPunishedWithinItsWindow) {
  const std::array<float, 3> logits = {2, 1.9f, -1};
  Sampler sampler({.temperature = 0, .repetition_penalty = 1.5, .repetition_window = 1});
  EXPECT_EQ(sampler.Next(logits), 0);
  EXPECT_EQ(sampler.Next(logits), 1);
  EXPECT_EQ(sampler.Next(logits), 0);
  sampler.Accept(std::array<int32_t, 1>{0});
  EXPECT_EQ(sampler.Next(logits), 1);
}

TEST(Sampler, ASeedGivesTheSameChoices) {
  const std::vector<float> logits(100, 0.0f);
  const auto draw = [&](uint64_t seed) {
    Sampler sampler({.temperature = 1, .top_p = 1, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(sampler.Next(logits));
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, LogProbsAreTheModels) {
  EXPECT_NEAR(LogProb(kLogits, 3), std::log(0.25), 1e-6);
  const auto top = TopLogProbs(kLogits, 2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_NEAR(top[1].logprob, std::log(0.25), 1e-6);
  EXPECT_EQ(TopLogProbs(kLogits, 99).size(), 4u);
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sampler({.temperature = -1}); }), {"temperature is -1"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sampler({.temperature = NAN}); }), {"temperature"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sampler({.top_k = -1}); }), {"top_k is -1"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sampler({.top_p = 1.5}); }), {"top_p is 1.5"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sampler({.min_p = -0.1}); }), {"min_p is -0.1"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Sampler({.repetition_penalty = 0}); }), {"repetition_penalty is 0"}));
}

}  // namespace
}  // namespace lattice::runtime
