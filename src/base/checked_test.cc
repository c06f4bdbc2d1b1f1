#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace lattice {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Checked, MultipliesAndAdds) {
  EXPECT_EQ(TryMul<int64_t>(6, -7), -42);
  EXPECT_EQ(TryMul<int64_t>(kMax, 2), std::nullopt);
  EXPECT_EQ(TryMul<size_t>(size_t{1} << 32, size_t{1} << 32), std::nullopt);
  EXPECT_EQ(TryAdd<int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(TryAdd<size_t>(std::numeric_limits<size_t>::max(), 1), std::nullopt);
  EXPECT_EQ(TryAdd<int64_t>(kMax - 1, 1), kMax);
}

TEST(Checked, ThrowsWithTheNameOfTheQuantity) {
  EXPECT_EQ(CheckedMul<int64_t>(3, 4, "cells"), 12);
  EXPECT_EQ(CheckedAdd<int64_t>(3, 4, "cells"), 7);
  try {
    CheckedMul<int64_t>(kMax, 3, "weights of block 2");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("weights of block 2"), std::string::npos) << error.what();
  }
  EXPECT_THROW(CheckedAdd<int64_t>(kMax, 3, "cells"), Error);
}

TEST(Checked, CountsElementsOfShapes) {
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(TryElements(Shape{}), 1);
  EXPECT_EQ(TryElements(Shape{2, 3, 4}), 24);
  EXPECT_EQ(TryElements(Shape{5, 0, 7}), 0);
  EXPECT_EQ(TryElements(Shape{-1}), std::nullopt);
  EXPECT_EQ(TryElements(Shape{0, -1}), std::nullopt);
  EXPECT_EQ(TryElements(Shape{int64_t{1} << 32, int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(TryElements(Shape{kMax, kMax, 0}), std::nullopt);
}

}  // namespace
}  // namespace lattice
