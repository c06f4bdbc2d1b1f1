#include "kernels/dense/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/isa.h"

namespace lattice::kernels {
namespace {

constexpr int64_t kCount = 77, kStride = 40;

// Keys and values of kCount tokens, kStride apart, and queries for them.
class Attention : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SetIsa(GetParam());
    uint64_t seed = 0;
    for (auto* x : {&queries_, &keys_, &values_}) {
      x->resize(kCount * kStride);
      Random(++seed).FillNormal(*x, 0, 1);
    }
  }
  void TearDown() override { SetIsa(AvailableIsas().back()); }

  // y of the queries of these tokens, each of which sees the tokens up to itself, in one call; ranges end before `cuts`.
  std::vector<float> Attended(const std::vector<int64_t>& tokens, int64_t width,
                              const std::vector<int64_t>& cuts = {}) const {
    std::vector<float> y(tokens.size() * static_cast<size_t>(width), NAN);
    std::vector<KeyRange> before;
    int64_t begin = 0;
    for (const int64_t cut : cuts) {
      before.push_back({&keys_[begin * kStride], &values_[begin * kStride], cut - begin});
      begin = cut;
    }
    AttentionRows p;
    p.keys = &keys_[begin * kStride];
    p.values = &values_[begin * kStride];
    p.stride = kStride;
    p.width = width;
    p.scale = 0.5f;
    p.before = before.data();
    p.before_count = static_cast<int64_t>(before.size());
    for (size_t i = 0; i < tokens.size(); ++i)
      p.Add({&queries_[tokens[i] * kStride], &y[i * static_cast<size_t>(width)], tokens[i] + 1 - begin});
    Attend(p);
    return y;
  }

  std::vector<double> Expected(int64_t token, int64_t width) const {
    std::vector<double> y(width);
    double total = 0;
    for (int64_t i = 0; i <= token; ++i) {
      double score = 0;
      for (int64_t d = 0; d < width; ++d)
        score += 0.5 * queries_[token * kStride + d] * keys_[i * kStride + d];
      total += std::exp(score);
      for (int64_t d = 0; d < width; ++d) y[d] += std::exp(score) * values_[i * kStride + d];
    }
    for (double& value : y) value /= total;
    return y;
  }

  std::vector<float> queries_, keys_, values_;
};
INSTANTIATE_TEST_SUITE_P(Isa, Attention, testing::ValuesIn(AvailableIsas()));

TEST_P(Attention, IsTheWeightedMeanOfTheValues) {
  for (const int64_t width : {1, 3, 4, 13, 16, 32, 40}) {
    for (const int64_t token : {0, 1, 2, 3, 4, 20, 31, 32, 33, 76}) {
      const std::vector<float> y = Attended({token}, width);
      const std::vector<double> expected = Expected(token, width);
      for (int64_t d = 0; d < width; ++d) EXPECT_NEAR(y[d], expected[d], 1e-5) << token << " " << width;
    }
  }
}

TEST_P(Attention, ARowsBitsDependNeitherOnTheOthersNorOnRanges) {
  for (const int64_t width : {13, 32}) {
    for (const auto& tokens : std::vector<std::vector<int64_t>>{{5, 6},
                                                                {40, 41, 42},
                                                                {3, 3, 3, 4, 4, 4},
                                                                {30, 31, 32, 33, 34, 35, 36, 37},
                                                                {76, 9, 60},
                                                                {8, 7, 6, 76, 5}}) {
      const std::vector<float> together = Attended(tokens, width);
      for (size_t i = 0; i < tokens.size(); ++i) {
        const std::vector<float> alone(together.begin() + static_cast<int64_t>(i) * width,
                                       together.begin() + static_cast<int64_t>(i + 1) * width);
        EXPECT_EQ(alone, Attended({tokens[i]}, width)) << tokens[i] << " of " << tokens.size();
      }
    }
    EXPECT_EQ(Attended({75, 76}, width), Attended({75, 76}, width, {1, 34, 35, 75}));
    EXPECT_EQ(Attended({40}, width), Attended({40}, width, {41})) << "the last range may be empty";
  }
}

TEST_P(Attention, WhatARowDoesNotSeeReachesItNot) {
  const std::vector<float> before = Attended({30}, 13);
  for (int64_t d = 0; d < kStride; ++d) keys_[31 * kStride + d] = values_[31 * kStride + d] = NAN;
  const std::vector<float> both = Attended({30, 31}, 13);
  EXPECT_EQ(before, std::vector<float>(both.begin(), both.begin() + 13));
  for (int64_t d = 13; d < 26; ++d) EXPECT_TRUE(std::isnan(both[d]));
}

// Scores are so large that the others are nothing beside them.
TEST_P(Attention, LargeScoresDoNotOverflow) {
  for (int64_t d = 0; d < 4; ++d) queries_[9 * kStride + d] = keys_[6 * kStride + d] = 1e9f;
  const std::vector<float> y = Attended({9}, 4);
  for (int64_t d = 0; d < 4; ++d) EXPECT_EQ(y[d], values_[6 * kStride + d]);
}

}  // namespace
}  // namespace lattice::kernels
