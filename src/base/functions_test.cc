#include "base/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/random.h"

namespace lattice {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// How far `got` is from `want`, in units of the last place of `want`.
double UlpsAway(double got, long double want) {
  const double size = std::abs(static_cast<double>(want));
  const double ulp = std::nextafter(size, kInfinity) - size;
  return std::abs(static_cast<double>(got - want)) / ulp;
}

// check(x) for numbers of the interval.
template <class Check>
void Over(double low, double high, const Check& check) {
  const Random random(7);
  for (uint64_t i = 0; i < 20'000; ++i) check(low + (high - low) * random.Uniform(i));
}

TEST(Functions, ExponentialsAndLogarithmsAreAccurate) {
  for (const auto& [low, high] : {std::pair{-700.0, 700.0}, {-1.0, 1.0}, {-1e-9, 1e-9}})
    Over(low, high,
         [](double x) { EXPECT_LE(UlpsAway(Exp(x), std::exp(static_cast<long double>(x))), 1) << x; });
  for (const auto& [low, high] : {std::pair{0.0, 1e300}, {0.5, 2.0}, {0.0, 1e-300}})
    Over(low, high,
         [](double x) { EXPECT_LE(UlpsAway(Log(x), std::log(static_cast<long double>(x))), 1) << x; });
  for (const auto& [low, high] : {std::pair{-0.99, 1.0}, {0.0, 1e-8}, {0.0, 1e300}})
    Over(low, high,
         [](double x) { EXPECT_LE(UlpsAway(Log1p(x), std::log1p(static_cast<long double>(x))), 3) << x; });
}

TEST(Functions, PowersAreAsAccurateAsTheirExponent) {
  Over(-1, 0, [](double y) {
    for (const double x : {10'000.0, 500'000.0})
      EXPECT_LE(UlpsAway(Power(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))),
                3 * (1 + std::abs(y * std::log(x))))
          << x << " " << y;
  });
}

TEST(Functions, SineAndCosineAreAccurate) {
  const auto check = [](double x) {
    const auto [sine, cosine] = SineAndCosine(x);
    EXPECT_LE(UlpsAway(sine, std::sin(static_cast<long double>(x))), 1) << x;
    EXPECT_LE(UlpsAway(cosine, std::cos(static_cast<long double>(x))), 1) << x;
  };
  for (const double end : {1.0, 100.0, 1.5e6, 1e9}) Over(-end, end, check);
  // Where one of them is nearly zero, all digits come from the reduction of the angle.
  for (int n = 1; n < 5'000; ++n) check(n * 1.5707963267948966);
}

TEST(Functions, EndsOfTheRange) {
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(710), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-746), 0);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_EQ(Exp(-745), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
  EXPECT_EQ(Log(1), 0);
  EXPECT_EQ(Log(0), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1)));
  EXPECT_TRUE(std::isnan(Log(kNaN)));
  EXPECT_EQ(Log1p(1e-20), 1e-20);
  EXPECT_EQ(Log1p(-1), -kInfinity);
  EXPECT_EQ(Log1p(kInfinity), kInfinity);
  EXPECT_EQ(Power(1, -3), 1);
  EXPECT_EQ(SineAndCosine(0).cosine, 1);
  EXPECT_TRUE(std::isnan(SineAndCosine(kNaN).sine));
}

// The promise itself: a number that depends on every bit of many results, as an x86-64 computed it.
TEST(Functions, BitsAreTheSameEverywhere) {
  uint64_t hash = 1;
  const auto add = [&](double x) {
    hash = (hash ^ std::bit_cast<uint64_t>(x)) * 0x9E3779B97F4A7C15 + (hash >> 32);
  };
  Over(-30, 30, [&](double x) {
    add(Exp(x));
    add(Log(std::abs(x)));
    add(Log1p(Exp(x)));
    add(Power(10'000, x / 30));
    const auto [sine, cosine] = SineAndCosine(x * 50'000);
    add(sine);
    add(cosine);
  });
  EXPECT_EQ(hash, 3476071717260664678u);
}

}  // namespace
}  // namespace lattice
