#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace lattice::model {
namespace {

TEST(Rope, RatesFallGeometrically) {
  ModelConfig config;
  config.rope_theta = 10000;
  const std::vector<double> rates = RopeRates(config, 4);
  EXPECT_DOUBLE_EQ(rates[0], 1);
  EXPECT_DOUBLE_EQ(rates[1], 0.1);
  EXPECT_DOUBLE_EQ(rates[3], 0.001);
}

TEST(Rope, LinearScalingSlowsAllDown) {
  ModelConfig config;
  const std::vector<double> plain = RopeRates(config, 8);
  config.rope_type = RopeType::kLinear;
  config.rope_factor = 4;
  const std::vector<double> slow = RopeRates(config, 8);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(slow[i], plain[i] / 4);
}

// The three cases by wavelength, as the makers of LLaMA 3.1 published them.
TEST(Rope, Llama3SlowsLongWavesDown) {
  ModelConfig config;
  config.rope_theta = 500000;
  const std::vector<double> plain = RopeRates(config, 64);
  config.rope_type = RopeType::kLlama3;
  config.rope_factor = 8;
  config.rope_low = 1;
  config.rope_high = 4;
  config.rope_context = 8192;
  const std::vector<double> rates = RopeRates(config, 64);
  int fast = 0, slow = 0, between = 0;
  for (size_t i = 0; i < rates.size(); ++i) {
    const double wave = 2 * std::numbers::pi / plain[i];
    if (wave < 8192.0 / 4) {
      EXPECT_DOUBLE_EQ(rates[i], plain[i]);
      ++fast;
    } else if (wave > 8192.0 / 1) {
      EXPECT_DOUBLE_EQ(rates[i], plain[i] / 8);
      ++slow;
    } else {
      const double smooth = (8192 / wave - 1) / (4 - 1);
      EXPECT_NEAR(rates[i], (1 - smooth) * plain[i] / 8 + smooth * plain[i], 1e-15);
      ++between;
    }
  }
  EXPECT_GT(fast, 5);
  EXPECT_GT(slow, 5);
  EXPECT_GT(between, 2);
}

}  // namespace
}  // namespace lattice::model
