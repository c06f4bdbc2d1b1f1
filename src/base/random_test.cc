#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"

namespace lattice {
namespace {

// The known answers published with the generator.
TEST(Random, PhiloxKnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, DependsOnSeedStreamAndIndexOnly) {
  const Random a(1, 2), again(1, 2), other_seed(2, 2), other_stream(1, 3);
  EXPECT_EQ(a.Bits(77), again.Bits(77));
  EXPECT_NE(a.Bits(77), a.Bits(78));
  EXPECT_NE(a.Bits(77), other_seed.Bits(77));
  EXPECT_NE(a.Bits(77), other_stream.Bits(77));
  EXPECT_NE(a.Bits(77), a.Bits(77 + (uint64_t{1} << 32)));
}

TEST(Random, UniformHasTheRightMoments) {
  const Random random(5);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double u = random.Uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
}

TEST(Random, NormalHasTheRightMoments) {
  const Random random(6);
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.Normal(i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.015);
  EXPECT_NEAR(squares / kCount, 1.0, 0.02);
  EXPECT_NEAR(fourth / kCount, 3.0, 0.15);
}

TEST(Random, BelowCoversTheRangeEvenly) {
  const Random random(7);
  std::vector<int> counts(10);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t value = random.Below(10, i);
    ASSERT_LT(value, 10u);
    ++counts[value];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
  EXPECT_EQ(random.Below(1, 3), 0u);
  EXPECT_THROW(random.Below(0, 3), Error);
}

TEST(Random, FillsDoNotDependOnTheLength) {
  const Random random(8, 9);
  std::vector<float> whole(103), part(50);
  random.FillNormal(whole, 0, 1);
  random.FillNormal(part, 0, 1);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[i]);
  random.FillUniform(whole, -2, 3);
  random.FillUniform(part, -2, 3);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[i]);
}

TEST(Random, FillsHaveTheRightMoments) {
  std::vector<float> values(200001);
  Random(11).FillNormal(values, 3.0f, 0.5f);
  double sum = 0, squares = 0;
  for (const float x : values) {
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += (x - 3.0) * (x - 3.0);
  }
  EXPECT_NEAR(sum / values.size(), 3.0, 0.005);
  EXPECT_NEAR(squares / values.size(), 0.25, 0.005);
  EXPECT_GT(std::set<float>(values.begin(), values.begin() + 1000).size(), 990u);

  Random(12).FillUniform(values, -1.0f, 1.0f);
  sum = squares = 0;
  for (const float x : values) {
    ASSERT_GE(x, -1.0f);
    ASSERT_LE(x, 1.0f);
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / values.size(), 0.0, 0.005);
  EXPECT_NEAR(squares / values.size(), 1.0 / 3, 0.005);
}

}  // namespace
}  // namespace lattice
