// Compensated weights against an independent, slow form of the algorithm, and against weights rounded one by one.
#include "quantize/compensate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/dense/groups.h"
#include "quantize/input_squares.h"

namespace lattice::quantize {
namespace {

constexpr int64_t kCols = 150, kRows = 9, kTokens = 400;

// Inputs that depend on each other: every column has a part of the one before it.
std::vector<float> Inputs() {
  std::vector<float> x(kTokens * kCols);
  Random(1).FillNormal(x, 0, 1);
  for (int64_t i = 0; i < kTokens; ++i) {
    for (int64_t c = 1; c < kCols; ++c) x[i * kCols + c] += 0.9f * x[i * kCols + c - 1];
  }
  return x;
}

std::vector<float> Matrix() {
  std::vector<float> w(kRows * kCols);
  Random(2).FillNormal(w, 0, 0.1f);
  return w;
}

std::vector<float> Widened(const std::vector<std::byte>& rows) {
  std::vector<float> out(kRows * kCols);
  for (int64_t row = 0; row < kRows; ++row)
    kernels::WidenGroups(&rows[row * kernels::RowBytes(kernels::WeightFormat::kInt4, kCols)], kCols,
                         &out[row * kCols]);
  return out;
}

// |X (W - Q)^T|^2
double OutputError(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& q) {
  double sum = 0;
  for (int64_t i = 0; i < kTokens; ++i) {
    for (int64_t row = 0; row < kRows; ++row) {
      double y = 0;
      for (int64_t c = 0; c < kCols; ++c)
        y += x[i * kCols + c] * (double{w[row * kCols + c]} - q[row * kCols + c]);
      sum += y * y;
    }
  }
  return sum;
}

TEST(InputSquares, AreTheSumsOfProducts) {
  const std::vector<float> x = Inputs();
  ThreadPool one(1), two(2);
  InputSquares squares(kCols), again(kCols);
  squares.Add(x.data(), 150, one);
  squares.Add(x.data() + 150 * kCols, kTokens - 150, one);
  again.Add(x.data(), 150, two);
  again.Add(x.data() + 150 * kCols, kTokens - 150, two);
  EXPECT_EQ(squares.sums(), again.sums());
  for (int64_t a = 0; a < kCols; a += 7) {
    for (int64_t b = 0; b < kCols; b += 11) {
      double sum = 0;
      for (int64_t i = 0; i < kTokens; ++i) sum += double{x[i * kCols + a]} * x[i * kCols + b];
      EXPECT_NEAR(squares.sums()[a * kCols + b], sum, 1e-2) << a << ", " << b;
    }
  }
}

// Eliminating column j from H leaves what the columns behind it can still make up for. The weights there move by
// -(w_j - q_j) H'^-1 h, which is solved here by elimination of the whole matrix, for every column anew.
std::vector<double> BestRest(std::vector<double> h, int64_t n, const std::vector<double>& right) {
  std::vector<double> solution = right;
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = h[i * n + k] / h[k * n + k];
      for (int64_t j = k; j < n; ++j) h[i * n + j] -= factor * h[k * n + j];
      solution[i] -= factor * solution[k];
    }
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    for (int64_t j = k + 1; j < n; ++j) solution[k] -= h[k * n + j] * solution[j];
    solution[k] /= h[k * n + k];
  }
  return solution;
}

TEST(ErrorShares, MoveTheNextColumnToWhereTheRestIsBest) {
  const std::vector<float> x = Inputs();
  ThreadPool threads(1);
  InputSquares squares(kCols);
  squares.Add(x.data(), kTokens, threads);
  const ErrorShares shares(squares.sums(), kCols, threads);
  std::vector<double> h = squares.sums();
  std::vector<double> diagonal;
  for (int64_t i = 0; i < kCols; ++i) diagonal.push_back(h[i * kCols + i]);
  std::sort(diagonal.begin(), diagonal.end());
  for (int64_t i = 0; i < kCols; ++i) h[i * kCols + i] += 0.1 * (h[i * kCols + i] + diagonal[kCols / 2]);
  // With an error of 1 in column j alone, the best change of the columns behind it is -H_rr^-1 H_rj. Shares give the
  // first of them as t_{j+1} - w_{j+1} = R_{j,j+1} / R_{j+1,j+1}.
  for (const int64_t j : {0, 17, 100, 148}) {
    const int64_t rest = kCols - j - 1;
    std::vector<double> part(rest * rest), right(rest);
    for (int64_t a = 0; a < rest; ++a) {
      right[a] = h[(j + 1 + a) * kCols + j];
      for (int64_t b = 0; b < rest; ++b) part[a * rest + b] = h[(j + 1 + a) * kCols + j + 1 + b];
    }
    EXPECT_NEAR(shares.From(j)[0], BestRest(part, rest, right)[0], 1e-4) << j;
  }
}

TEST(Compensated, OutputsAreNearerThanThoseOfRoundedWeights) {
  const std::vector<float> x = Inputs(), w = Matrix();
  ThreadPool one(1), two(2);
  InputSquares squares(kCols);
  squares.Add(x.data(), kTokens, one);
  const ErrorShares shares(squares.sums(), kCols, one), again(squares.sums(), kCols, two);
  const std::vector<std::byte> rows = Compensated(w.data(), kRows, shares, one);
  EXPECT_EQ(rows, Compensated(w.data(), kRows, again, two));
  std::vector<std::byte> plain(rows.size());
  for (int64_t row = 0; row < kRows; ++row)
    kernels::QuantizeGroups(&w[row * kCols], kCols, &plain[row * (plain.size() / kRows)]);
  const double compensated = OutputError(x, w, Widened(rows)), rounded = OutputError(x, w, Widened(plain));
  EXPECT_LT(compensated, 0.5 * rounded);
  EXPECT_GT(compensated, 0);
}

TEST(Compensated, WithoutInputsWeightsAreRoundedOneByOne) {
  const std::vector<float> w = Matrix();
  ThreadPool threads(1);
  const ErrorShares shares(std::vector<double>(kCols * kCols), kCols, threads);
  const std::vector<std::byte> rows = Compensated(w.data(), kRows, shares, threads);
  std::vector<std::byte> plain(rows.size());
  for (int64_t row = 0; row < kRows; ++row)
    kernels::QuantizeGroups(&w[row * kCols], kCols, &plain[row * (plain.size() / kRows)]);
  EXPECT_EQ(rows, plain);
}

}  // namespace
}  // namespace lattice::quantize
