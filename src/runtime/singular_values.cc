// Singular values by the one-sided Jacobi method: rotate pairs of rows until all rows are orthogonal; their
// lengths are then the singular values.
#include <algorithm>
#include <cmath>

#include "runtime/memory_view.h"

namespace lattice::runtime {
namespace {

constexpr int kMostSweeps = 30;
constexpr double kOrthogonal = 1e-9;

// Makes two rows orthogonal. Returns false if they already were.
bool Rotate(double* a, double* b, int64_t n) {
  double aa = 0, bb = 0, ab = 0;
  for (int64_t i = 0; i < n; ++i) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  if (std::abs(ab) <= kOrthogonal * std::sqrt(aa * bb)) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double t = std::copysign(1 / (std::abs(zeta) + std::hypot(1, zeta)), zeta);
  const double c = 1 / std::hypot(1, t), s = c * t;
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
  return true;
}

}  // namespace

std::vector<double> SingularValues(std::span<const float> matrix, int64_t rows, int64_t columns) {
  std::vector<double> work(matrix.begin(), matrix.end());
  if (rows > columns) {  // Transpose: fewer rows need fewer rotations.
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        work[static_cast<size_t>(c * rows + r)] = matrix[static_cast<size_t>(r * columns + c)];
    }
    std::swap(rows, columns);
  }
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = i + 1; j < rows; ++j)
        turned |=
            Rotate(&work[static_cast<size_t>(i * columns)], &work[static_cast<size_t>(j * columns)], columns);
    }
  }
  std::vector<double> values;
  for (int64_t i = 0; i < rows; ++i) {
    double square = 0;
    for (int64_t c = 0; c < columns; ++c) square += std::pow(work[static_cast<size_t>(i * columns + c)], 2);
    values.push_back(std::sqrt(square));
  }
  return values;
}

}  // namespace lattice::runtime
