#include "runtime/memory_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lattice::runtime {
namespace {

TEST(SingularValues, OfKnownMatrices) {
  const std::vector<float> matrix = {3, 0, 0, 4, 0, 0};
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{2, 3}, {3, 2}}) {
    std::vector<double> values = SingularValues(matrix, rows, columns);
    std::sort(values.begin(), values.end());
    ASSERT_EQ(values.size(), 2u);
    // As 2x3 the rows are (3,0,0) and (4,0,0): one direction. As 3x2: (3,0), (0,4), (0,0).
    EXPECT_NEAR(values[0], rows == 2 ? 0 : 3, 1e-9);
    EXPECT_NEAR(values[1], rows == 2 ? 5 : 4, 1e-9);
  }
}

TEST(SingularValues, KeepSumOfSquaresAndDeterminant) {
  const std::vector<float> matrix = {2, -1, 0.5f, 1, 3, -2, 0, 1, 1.5f};
  double squares = 0, product = 1;
  for (const double value : SingularValues(matrix, 3, 3)) squares += value * value, product *= value;
  EXPECT_NEAR(squares, 4 + 1 + 0.25 + 1 + 9 + 4 + 1 + 2.25, 1e-9);
  EXPECT_NEAR(product, 2 * (4.5 + 2) + 1 * 1.5 + 0.5, 1e-9);
}

TEST(EffectiveNumber, CountsEqualParts) {
  EXPECT_NEAR(EffectiveNumber(std::vector<double>{2, 2, 2, 0}), 3, 1e-12);
  EXPECT_EQ(EffectiveNumber(std::vector<double>{0, 0}), 0);
}

}  // namespace
}  // namespace lattice::runtime
