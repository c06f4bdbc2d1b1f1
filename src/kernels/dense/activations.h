// Rows of activations, converted to the form in which products with a weight format take them.
#ifndef LATTICE_KERNELS_DENSE_ACTIVATIONS_H_
#define LATTICE_KERNELS_DENSE_ACTIVATIONS_H_

#include <cstdint>
#include <vector>

#include "kernels/dense/matmul.h"

namespace lattice::kernels {

// Call Reset, then Convert for every row (on any threads, in any ranges), then Times for each product. The
// buffers are reused from Reset to Reset.
class Activations {
 public:
  // x [count, cols] belongs to the caller and must stay valid: it is not copied where the format takes
  // float32.
  void Reset(WeightFormat format, const float* x, int64_t count, int64_t cols);
  // Whether Convert has anything to do.
  bool converts() const { return quantizes() || (weights_ == WeightFormat::kBf16 && bf16_); }
  void Convert(int64_t first, int64_t last);

  // The product with w, which has the format and columns given to Reset; y is [count, w.rows].
  MatMul Times(const WeightMatrix& w, float* y);

 private:
  bool quantizes() const { return ActivationFormat(weights_) == WeightFormat::kInt8; }
  PackedRows Converted();

  WeightFormat weights_ = WeightFormat::kF32;  // the format given to Reset
  bool bf16_ = false;
  const float* x_ = nullptr;
  int64_t count_ = 0, cols_ = 0;
  std::vector<uint32_t> words_;
  std::vector<float> scales_, sums_;
  std::vector<int32_t> offsets_;
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_ACTIVATIONS_H_
