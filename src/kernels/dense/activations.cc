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
  format_ = ActivationFormat(format);
  bf16_ = WantsBf16Rows();
  x_ = x;
  count_ = count;
  cols_ = cols;
  if (!converts()) return;
  Grow(words_, count * WordsOf(format_, cols));
  if (format_ != WeightFormat::kInt8) return;
  Grow(scales_, count * PackedRows::Blocks(cols));
  Grow(offsets_, count * PackedRows::Blocks(cols));
}

void Activations::Convert(int64_t first, int64_t last) {
  if (!converts()) return;
  const auto convert = format_ == WeightFormat::kBf16 ? RoundRows : QuantizeRows;
  convert(x_, cols_, Converted(), first, last);
}

MatMul Activations::Times(const WeightMatrix& w, float* y) { return {w, count_, x_, Converted(), y}; }

PackedRows Activations::Converted() { return {count_, words_.data(), scales_.data(), offsets_.data()}; }

}  // namespace lattice::kernels
