#include "kernels/activations.h"

#include <cstddef>

namespace lattice::kernels {
namespace {

template <typename T>
void Grow(std::vector<T>& values, int64_t size) {
  if (values.size() < static_cast<size_t>(size)) values.resize(static_cast<size_t>(size));
}

}  // namespace

void Activations::Reset(WeightFormat format, const float* x, int64_t count, int64_t cols) {
  format_ = format;
  bf16_ = WantsBf16Rows();
  x_ = x;
  count_ = count;
  cols_ = cols;
  if (!converts()) return;
  if (format == WeightFormat::kBf16) return Grow(rounded_, count * Bf16Rows::Stride(cols));
  Grow(high_, count * Int8Rows::Stride(cols));
  Grow(low_, count * Int8Rows::Stride(cols));
  Grow(scales_, count);
  Grow(sums_, count);
}

void Activations::Convert(int64_t first, int64_t last) {
  if (!converts()) return;
  if (format_ == WeightFormat::kBf16) return RoundRows(x_, cols_, {rounded_.data()}, first, last);
  QuantizeRows(x_, cols_, AsInt8(), first, last);
}

MatMul Activations::Times(const WeightMatrix& w, float* y) {
  return {w, count_, x_, AsInt8(), {rounded_.data()}, y};
}

Int8Rows Activations::AsInt8() { return {high_.data(), low_.data(), scales_.data(), sums_.data()}; }

}  // namespace lattice::kernels
