// Four-bit weights whose errors make up for each other on a text.
//
// Let X be the inputs that a matrix W met on the text, and E = W - Q the errors of the four-bit weights. What the
// outputs are off by is |X E^T|^2 = tr(E H E^T) with H = X^T X. Write H = R R^T with an upper triangular R. Then a row e
// of E costs the sum over the columns i of
//
//   (R_ii e_i + sum over j < i of R_ji e_j)^2,
//
// so if columns are rounded from the first to the last, column i is best rounded from the target
//
//   t_i = w_i + sum over j < i of e_j R_ji / R_ii.
//
// That is GPTQ (Frantar et al., 2022) in the order of the columns, without an inverse of H. The grid of a group is
// fitted to its weights, each counting H_ii times, and not to the targets: those may move far where inputs are small, and a
// model that lies on a grid already must stay there.
#ifndef LATTICE_QUANTIZE_COMPENSATE_H_
#define LATTICE_QUANTIZE_COMPENSATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace lattice::quantize {

// The shares R_ji / R_ii of one H and the weights H_ii, for all matrices that read these inputs.
class ErrorShares {
 public:
  // `squares` is H, [cols, cols]. A part of its diagonal is added to it, so that weights do not follow accidents of a
  // short text.
  ErrorShares(const std::vector<double>& squares, int64_t cols, ThreadPool& threads);

  int64_t cols() const { return cols_; }
  // What the error of column j adds to the targets of columns [j + 1, cols): element i - j - 1 is R_ji / R_ii.
  const float* From(int64_t j) const { return shares_.data() + j * cols_ + j + 1; }
  // What a squared error of column j alone costs, relative to other columns: H_jj.
  const float* Weights(int64_t j) const { return weights_.data() + j; }

 private:
  int64_t cols_;
  std::vector<float> weights_;
  std::vector<float> shares_;  // [cols, cols], row j from column j + 1 on
};

// Quantises w [rows, cols] to int4: rows of RowBytes bytes. The result does not depend on the number of threads.
std::vector<std::byte> Compensated(const float* w, int64_t rows, const ErrorShares& shares,
                                   ThreadPool& threads);

}  // namespace lattice::quantize

#endif  // LATTICE_QUANTIZE_COMPENSATE_H_
