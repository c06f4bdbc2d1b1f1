// How large the inputs of a matrix are, and how they go together: the sums of their products, X^T X, over a text.
#ifndef LATTICE_QUANTIZE_INPUT_SQUARES_H_
#define LATTICE_QUANTIZE_INPUT_SQUARES_H_

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace lattice::quantize {

// Used by one thread at a time. The sums do not depend on the number of threads.
class InputSquares {
 public:
  explicit InputSquares(int64_t cols) : cols_(cols), sums_(static_cast<size_t>(cols * cols)) {}

  // Adds the rows of x [rows, cols]. Rows whose mean square is far above the median count as if they were not: in some
  // models the first token of a text has activations of a thousand times the usual size, and would decide alone.
  void Add(const float* x, int64_t rows, ThreadPool& threads);

  int64_t cols() const { return cols_; }
  // [cols, cols], symmetric.
  const std::vector<double>& sums() const { return sums_; }

 private:
  int64_t cols_;
  std::vector<double> sums_;
};

}  // namespace lattice::quantize

#endif  // LATTICE_QUANTIZE_INPUT_SQUARES_H_
