#include "quantize/input_squares.h"

#include <algorithm>
#include <cmath>

#include "kernels/dense/matmul.h"

namespace lattice::quantize {

namespace {

// The most that the mean square of a row may be, relative to the median.
constexpr double kLargest = 16;

// What each row of x is multiplied with.
std::vector<float> RowFactors(const float* x, int64_t rows, int64_t cols) {
  std::vector<double> squares;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += double{x[row * cols + c]} * x[row * cols + c];
    // NaN has no place in an order; it is found where H is decomposed.
    squares.push_back(std::isnan(sum) ? INFINITY : sum);
  }
  std::vector<double> sorted = squares;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(rows / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double most = kLargest * *middle;
  std::vector<float> factors;
  for (const double sum : squares)
    factors.push_back(std::isfinite(sum) && sum > most && most > 0 ? static_cast<float>(std::sqrt(most / sum))
                                                                   : 1.0f);
  return factors;
}

}  // namespace

// The products of one call are summed in float32, by the same kernel as a model's, and those of all calls in float64.
void InputSquares::Add(const float* x, int64_t rows, ThreadPool& threads) {
  constexpr int64_t kPiece = 64;
  std::vector<float> columns(static_cast<size_t>(cols_ * rows)), products(static_cast<size_t>(cols_ * cols_));
  const std::vector<float> factors = RowFactors(x, rows, cols_);
  for (int64_t row = 0; row < rows; ++row) {
    const float factor = factors[static_cast<size_t>(row)];
    for (int64_t c = 0; c < cols_; ++c)
      columns[static_cast<size_t>(c * rows + row)] = factor * x[row * cols_ + c];
  }
  kernels::MatMul product;
  product.w = {kernels::WeightFormat::kF32, cols_, rows, columns.data(), nullptr};
  product.count = cols_;
  product.x = columns.data();
  product.y = products.data();
  threads.For(cols_, kPiece, [&](int64_t first, int64_t last) { kernels::MatMulRows(product, first, last); });
  for (size_t i = 0; i < products.size(); ++i) sums_[i] += products[i];
}

}  // namespace lattice::quantize
