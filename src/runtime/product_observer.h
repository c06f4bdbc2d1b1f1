// What the products of a model read, shown to a caller who wants to measure it.
#ifndef LATTICE_RUNTIME_PRODUCT_OBSERVER_H_
#define LATTICE_RUNTIME_PRODUCT_OBSERVER_H_

#include <cstdint>
#include <span>

#include "kernels/dense/matmul.h"

namespace lattice::runtime {

class ProductObserver {
 public:
  virtual ~ProductObserver() = default;
  // `matrices` are about to be multiplied with x [rows, cols], which is valid during the call. A matrix has the data
  // of Weights::Matrix; the small matrices of gates come too.
  virtual void OnProducts(std::span<const kernels::WeightMatrix> matrices, const float* x, int64_t rows) = 0;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_PRODUCT_OBSERVER_H_
