#include "kernels/dense/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace lattice::kernels {
namespace {

std::vector<float> Normal(int64_t count, float deviation) {
  std::vector<float> w(static_cast<size_t>(count));
  Random(1).FillNormal(w, 0, deviation);
  return w;
}

std::vector<float> There(const std::vector<float>& w) {
  const auto cols = static_cast<int64_t>(w.size());
  std::vector<std::byte> row(static_cast<size_t>(RowBytes(WeightFormat::kInt4, cols)));
  std::vector<float> back(w.size(), NAN);
  QuantizeGroups(w.data(), cols, row.data());
  WidenGroups(row.data(), cols, back.data());
  return back;
}

TEST(Groups, GiveBackWhatWasPacked) {
  for (const uint8_t shift : {0, 5}) {
    uint8_t q[kGroupColumns];
    for (size_t i = 0; i < kGroupColumns; ++i) q[i] = static_cast<uint8_t>((7 * i + i / 16 + shift) % 16);
    const Grid grid = {0.25f, -2};
    std::byte group[kGroupBytes];
    PackGroup(grid, q, group);
    EXPECT_EQ(GridOf(group).factor, 0.25f);
    EXPECT_EQ(GridOf(group).offset, -2);
    float values[kGroupColumns];
    WidenGroups(group, kGroupColumns, values);
    for (size_t i = 0; i < kGroupColumns; ++i) EXPECT_EQ(values[i], 0.25f * q[i] - 2) << i;
  }
}

TEST(Groups, TakeTheNearestValue) {
  const Grid grid = {0.5f, -1};
  EXPECT_EQ(grid.Nearest(-1), 0);
  EXPECT_EQ(grid.Nearest(-0.7f), 1);
  EXPECT_EQ(grid.Nearest(-0.8f), 0);
  EXPECT_EQ(grid.Nearest(6.6f), 15);
  EXPECT_EQ(grid.Nearest(1e30f), 15);
  EXPECT_EQ(grid.Nearest(-1e30f), 0);
  EXPECT_EQ(Grid{}.Nearest(1), 0);
}

// A grid over the whole range has steps of range / 15; what is chosen may not be worse than that.
TEST(Groups, AreNoWorseThanGridsOverTheWholeRange) {
  for (const int64_t cols : {64, 1000, 67}) {
    const std::vector<float> w = Normal(cols, 0.02f), back = There(w);
    for (int64_t first = 0; first < cols; first += kGroupColumns) {
      const auto begin = w.begin() + first, end = w.begin() + std::min(cols, first + kGroupColumns);
      const auto [low, high] = std::minmax_element(begin, end);
      const double step = (*high - *low) / 15;
      double chosen = 0, plain = 0;
      for (auto at = begin; at != end; ++at) {
        chosen += std::pow(*at - back[static_cast<size_t>(at - w.begin())], 2);
        plain += std::pow(*at - (*low + step * std::round((*at - *low) / step)), 2);
      }
      EXPECT_LE(chosen, 1.05 * plain + 1e-12) << cols << ", " << first;
    }
  }
}

TEST(Groups, HoldWhatIsAlreadyOnAGrid) {
  std::vector<float> w;
  // Of 32 columns each, as the four-bit types of GGUF files have them.
  for (int i = 0; i < 128; ++i) {
    const float factor = 0.125f * static_cast<float>(1 + i / 32);
    w.push_back(factor * static_cast<float>(i * 5 % 16) - 1);
  }
  EXPECT_EQ(There(w), w);
}

TEST(Groups, OfEqualAndOfHugeWeightsAreFinite) {
  EXPECT_EQ(There(std::vector<float>(70, 0.0f)), std::vector<float>(70, 0.0f));
  EXPECT_EQ(There(std::vector<float>(70, -0.5f)), std::vector<float>(70, -0.5f));
  std::vector<float> w = Normal(192, 1);
  w[3] = std::numeric_limits<float>::quiet_NaN();
  w[70] = std::numeric_limits<float>::infinity();
  w[130] = std::numeric_limits<float>::max();
  w[131] = -std::numeric_limits<float>::max();
  for (const float value : There(w)) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace lattice::kernels
