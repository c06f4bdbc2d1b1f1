#include "recall/mqar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "io/testing.h"

namespace lattice::recall {
namespace {

struct Example {
  explicit Example(const MqarGenerator& generator, uint64_t index)
      : tokens(static_cast<size_t>(generator.task().length), -7), labels(tokens.size(), -7) {
    generator.Make(index, tokens, labels);
  }
  // The slot of the query of key `j`.
  int64_t Slot(int64_t j, int64_t pairs) const {
    for (size_t at = static_cast<size_t>(2 * pairs); at < tokens.size(); at += 2) {
      if (labels[at] >= 0 && tokens[at] == tokens[static_cast<size_t>(2 * j)])
        return (static_cast<int64_t>(at) - 2 * pairs) / 2;
    }
    return -1;
  }
  std::vector<int64_t> tokens, labels;
};

TEST(Mqar, EveryKeyIsAskedForOnceAndItsValueIsTheLabel) {
  for (const bool noise : {true, false}) {
    const MqarGenerator generator({.length = 256, .pairs = 24, .noise = noise, .seed = 5});
    for (uint64_t index = 0; index < 50; ++index) {
      const Example example(generator, index);
      std::set<int64_t> keys, values;
      int64_t labelled = 0;
      for (size_t j = 0; j < 24; ++j) {
        keys.insert(example.tokens[2 * j]);
        values.insert(example.tokens[2 * j + 1]);
        const int64_t slot = example.Slot(static_cast<int64_t>(j), 24);
        ASSERT_GE(slot, 0);
        EXPECT_EQ(example.labels[48 + 2 * static_cast<size_t>(slot)], example.tokens[2 * j + 1]);
      }
      for (size_t t = 0; t < 256; ++t) {
        labelled += example.labels[t] >= 0;
        if (t < 48 || t % 2 == 1) {
          EXPECT_EQ(example.labels[t], MqarGenerator::kNoLabel);
        }
        EXPECT_GE(example.tokens[t], 0);
        EXPECT_LT(example.tokens[t], 8192);
        if (!noise && t >= 48 && example.labels[t] < 0) {
          EXPECT_EQ(example.tokens[t], 0);
        }
      }
      EXPECT_EQ(labelled, 24);
      EXPECT_EQ(keys.size(), 24u);
      EXPECT_EQ(values.size(), 24u);
      EXPECT_TRUE(*keys.begin() >= 1 && *keys.rbegin() <= 4095);
      EXPECT_TRUE(*values.begin() >= 4096 && *values.rbegin() <= 8191);
    }
  }
}

// For L and D: the probabilities that slot 0 and slot 1 are drawn first, and the mean slot of all keys and of
// key 0.
struct Law {
  int64_t length, pairs;
  double first, second, mean, mean_of_first;
};

class MqarLaw : public ::testing::TestWithParam<Law> {};
INSTANTIATE_TEST_SUITE_P(Table, MqarLaw,
                         ::testing::Values(Law{64, 4, 0.25106, 0.12640, 7.2, 6.2},
                                           Law{512, 64, 0.16730, 0.08423, 61.4, 32.5},
                                           Law{1024, 48, 0.14472, 0.07286, 107.5, 71},
                                           Law{1024, 256, 0.15923, 0.08017, 127.5, 42},
                                           Law{2048, 96, 0.13074, 0.06582, 214.8, 124}));

TEST_P(MqarLaw, Holds) {
  const Law& law = GetParam();
  const MqarGenerator generator({.length = law.length, .pairs = law.pairs, .seed = 11});
  constexpr int64_t kExamples = 3000;
  double first = 0, second = 0, all = 0, all_squares = 0, zero = 0, zero_squares = 0;
  for (int64_t i = 0; i < kExamples; ++i) {
    const Example example(generator, static_cast<uint64_t>(i));
    double sum = 0;
    for (size_t slot = 0; slot < static_cast<size_t>(law.length / 2 - law.pairs); ++slot) {
      if (example.labels[2 * (static_cast<size_t>(law.pairs) + slot)] >= 0) sum += static_cast<double>(slot);
    }
    const double mean = sum / static_cast<double>(law.pairs);
    const auto slot = static_cast<double>(example.Slot(0, law.pairs));
    first += slot == 0;
    second += slot == 1;
    all += mean;
    all_squares += mean * mean;
    zero += slot;
    zero_squares += slot * slot;
  }
  const double n = kExamples;
  const auto error = [n](double sum, double squares) {
    return std::sqrt((squares / n - sum / n * sum / n) / n);
  };
  EXPECT_NEAR(first / n, law.first, 4 * std::sqrt(law.first / n));
  EXPECT_NEAR(second / n, law.second, 4 * std::sqrt(law.second / n));
  // The means of the table are rounded, and were themselves estimated from 2,000 draws.
  EXPECT_NEAR(all / n, law.mean, 5 * error(all, all_squares) + 0.1);
  EXPECT_NEAR(zero / n, law.mean_of_first, 5 * error(zero, zero_squares) + 0.5);
}

TEST(Mqar, NoiseAndKeysAreUniform) {
  const MqarGenerator generator({.vocab = 128, .length = 64, .pairs = 8, .seed = 3});
  std::vector<double> noise(128), keys(128);
  double noises = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const Example example(generator, i);
    for (size_t j = 0; j < 8; ++j) ++keys[static_cast<size_t>(example.tokens[2 * j])];
    for (size_t t = 17; t < 64; t += 2) ++noise[static_cast<size_t>(example.tokens[t])], ++noises;
  }
  EXPECT_EQ(keys[0], 0);
  for (size_t v = 0; v < 128; ++v) {
    EXPECT_NEAR(noise[v], noises / 128, 5 * std::sqrt(noises / 128));
    if (v >= 1 && v < 64) {
      EXPECT_NEAR(keys[v], 32000.0 / 63, 5 * std::sqrt(32000.0 / 63));
    }
  }
}

TEST(Mqar, IsAFunctionOfSeedAndIndex) {
  const MqarGenerator one({.seed = 1}), other({.seed = 2});
  const Example first(one, 7);
  Example(one, 8);
  EXPECT_EQ(Example(one, 7).tokens, first.tokens);
  EXPECT_NE(Example(one, 8).tokens, first.tokens);
  EXPECT_NE(Example(other, 7).tokens, first.tokens);
}

TEST(Mqar, RefusesWhatCannotBe) {
  using io::ErrorOf;
  using io::Says;
  EXPECT_TRUE(Says(ErrorOf([] { MqarGenerator({.length = 64, .pairs = 17}); }), {"17 pairs", "68"}));
  EXPECT_TRUE(Says(ErrorOf([] { MqarGenerator({.length = 65, .pairs = 4}); }), {"even", "65"}));
  EXPECT_TRUE(Says(ErrorOf([] { MqarGenerator({.vocab = 64, .length = 64, .pairs = 4}); }), {"larger"}));
}

}  // namespace
}  // namespace lattice::recall
