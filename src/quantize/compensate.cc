#include "quantize/compensate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/dense/groups.h"

namespace lattice::quantize {
namespace {

using kernels::Grid;
using kernels::kGroupBytes;
using kernels::kGroupColumns;

// The part of the diagonal of H that is added to it: each column's own and the median, which keeps weights from moving far
// where inputs are small. Not the mean: in models with a few very large activations it would drown all others. Where the
// median is next to nothing, columns get a trace of the mean.
constexpr double kDamping = 0.1, kTrace = 1e-8;

double MedianOfDiagonal(const std::vector<double>& h, int64_t n) {
  std::vector<double> diagonal;
  for (int64_t i = 0; i < n; ++i) diagonal.push_back(h[static_cast<size_t>(i * (n + 1))]);
  // NaN has no place in an order; it is found where H is decomposed.
  std::replace_if(
      diagonal.begin(), diagonal.end(), [](double x) { return std::isnan(x); }, INFINITY);
  const auto middle = diagonal.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(diagonal.begin(), middle, diagonal.end());
  return *middle;
}

// In place: the lower triangle of h becomes R^T, that is h[i][j] = R_ji for j <= i, of h = R R^T with R upper triangular.
void Decompose(std::vector<double>& h, int64_t n, ThreadPool& threads) {
  constexpr int64_t kGrain = 32;
  for (int64_t k = n - 1; k >= 0; --k) {
    double* column = h.data() + k * n;  // R_.k
    Check(column[k] > 0 && std::isfinite(column[k]),
          "[convert] the activations on the calibration text are not numbers; check the model with eval ppl");
    const double root = std::sqrt(column[k]);
    column[k] = root;
    for (int64_t i = 0; i < k; ++i) column[i] /= root;
    threads.For(k, kGrain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        double* row = h.data() + i * n;
        const double factor = column[i];
        for (int64_t j = 0; j <= i; ++j) row[j] -= factor * column[j];
      }
    });
  }
}

// Quantises one row w [cols].
void CompensateRow(const float* w, const ErrorShares& shares, std::byte* out) {
  const int64_t cols = shares.cols();
  std::vector<float> t(w, w + cols);  // the targets, as far as the columns before them are known
  for (int64_t first = 0; first < cols; first += kGroupColumns, out += kGroupBytes) {
    const int64_t last = std::min(cols, first + kGroupColumns);
    const Grid grid = kernels::FitGrid(w + first, last - first, shares.Weights(first));
    uint8_t q[kGroupColumns] = {};
    for (int64_t j = first; j < last; ++j) {
      q[j - first] = grid.Nearest(t[static_cast<size_t>(j)]);
      const float error = w[j] - grid.Value(q[j - first]);
      const float* share = shares.From(j);
      float* later = t.data() + j + 1;
      for (int64_t i = 0; i < cols - j - 1; ++i) later[i] += error * share[i];
    }
    kernels::PackGroup(grid, q, out);
  }
}

}  // namespace

ErrorShares::ErrorShares(const std::vector<double>& squares, int64_t cols, ThreadPool& threads)
    : cols_(cols), weights_(static_cast<size_t>(cols)), shares_(static_cast<size_t>(cols * cols)) {
  std::vector<double> h = squares;
  double diagonal = 0;
  for (int64_t i = 0; i < cols; ++i) diagonal += h[static_cast<size_t>(i * cols + i)];
  // A matrix whose inputs are all zero may have any errors.
  const double median = MedianOfDiagonal(h, cols);
  const double trace = diagonal > 0 ? kTrace * diagonal / static_cast<double>(cols) : 1;
  for (int64_t i = 0; i < cols; ++i) {
    double& own = h[static_cast<size_t>(i * cols + i)];
    own += kDamping * (own + median) + trace;
    // Relative to the mean, so that they are in the range of float32.
    weights_[static_cast<size_t>(i)] = static_cast<float>(own / (trace / kTrace));
  }
  Decompose(h, cols, threads);
  for (int64_t i = 0; i < cols; ++i) {
    const double* row = h.data() + i * cols;
    for (int64_t j = 0; j < i; ++j)
      shares_[static_cast<size_t>(j * cols + i)] = static_cast<float>(row[j] / row[i]);
  }
}

std::vector<std::byte> Compensated(const float* w, int64_t rows, const ErrorShares& shares,
                                   ThreadPool& threads) {
  const int64_t cols = shares.cols(), row_bytes = kernels::RowBytes(kernels::WeightFormat::kInt4, cols);
  std::vector<std::byte> out(static_cast<size_t>(rows * row_bytes));
  threads.For(rows, 4, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row)
      CompensateRow(w + row * cols, shares, out.data() + row * row_bytes);
  });
  return out;
}

}  // namespace lattice::quantize
