#include "data/permutation.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/testing.h"

namespace lattice::data {
namespace {

TEST(Permutation, VisitsEveryElementOnce) {
  for (const int64_t n : {1, 2, 3, 4, 5, 16, 17, 100, 255, 256, 257, 4097}) {
    const Permutation order(n, 7, 3);
    std::vector<int> seen(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) ++seen.at(static_cast<size_t>(order(i)));
    EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(n), 1)) << n;
  }
}

TEST(Permutation, DependsOnSeedAndStreamOnly) {
  const int64_t n = 1000;
  const Permutation order(n, 7, 3), same(n, 7, 3), seed(n, 8, 3), stream(n, 7, 4);
  int seed_equal = 0, stream_equal = 0;
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(order(i), same(i));
    seed_equal += order(i) == seed(i);
    stream_equal += order(i) == stream(i);
  }
  EXPECT_LT(seed_equal, 20);
  EXPECT_LT(stream_equal, 20);
}

// A random order has a mean absolute displacement of n/3 and few neighbours that stay neighbours.
TEST(Permutation, LooksShuffled) {
  const int64_t n = 3000;
  const Permutation order(n, 1, 0);
  double displacement = 0;
  int neighbours = 0;
  for (int64_t i = 0; i < n; ++i) {
    displacement += static_cast<double>(std::abs(order(i) - i)) / static_cast<double>(n);
    if (i > 0) neighbours += order(i) == order(i - 1) + 1;
  }
  EXPECT_NEAR(displacement / static_cast<double>(n), 1.0 / 3, 0.03);
  EXPECT_LT(neighbours, 12);
}

TEST(Permutation, LargeSetsStayInRange) {
  const int64_t n = (int64_t{1} << 62) - 12345;
  const Permutation order(n, 1, 0);
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_LT(order(i), n);
    EXPECT_GE(order(i), 0);
  }
}

TEST(Permutation, RefusesWhatItCannotPermute) {
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Permutation(0, 1, 1); }), {"cannot permute 0"}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { Permutation(4, 1, 1)(4); }), {"4 is not below 4"}));
}

}  // namespace
}  // namespace lattice::data
