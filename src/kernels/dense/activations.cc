// Converts rows of activations once, for all products with weights of one format.
#include "kernels/dense/activations.h"

#include <cstddef>

namespace lattice::kernels {
namespace {

template <typename T>
void Grow(std::vector<T>& values, int64_t size) {
  if (values.size() < static_cast<size_t>(size)) values.resize(static_cast<size_t>(size));
}

}  // namespace

void Activations::Reset(WeightFormat format, const float* x, int64_t count, int64_t cols) {
  weights_ = format;
  bf16_ = WantsBf16Rows();
  x_ = x;
  count_ = count;
  cols_ = cols;
  if (!converts()) return;
  Grow(words_, count * WordsOf(ActivationFormat(format), cols));
  if (!quantizes()) return;
  const int64_t blocks = count * BlocksOf(format, cols);
  Grow(scales_, blocks);
  format == WeightFormat::kInt4 ? Grow(sums_, blocks) : Grow(offsets_, blocks);
}

void Activations::Convert(int64_t first, int64_t last) {
  if (!converts()) return;
  const auto convert = quantizes() ? QuantizeRows : RoundRows;
  convert(x_, cols_, Converted(), first, last);
}

MatMul Activations::Times(const WeightMatrix& w, float* y) { return {w, count_, x_, Converted(), y}; }

PackedRows Activations::Converted() {
  return {count_, words_.data(), scales_.data(), offsets_.data(), sums_.data(), weights_};
}

}  // namespace lattice::kernels
