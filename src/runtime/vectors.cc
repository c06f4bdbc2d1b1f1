#include "runtime/vectors.h"

#include <cmath>

#include "kernels/dense/pointwise.h"
#include "kernels/dense/row_norm.h"

namespace lattice::runtime {

void NormalizeVectors(model::VectorNorm kind, int64_t count, int64_t width, float* x) {
  if (kind == model::VectorNorm::kNone) return;
  if (kind != model::VectorNorm::kScale) {
    kernels::RowNormForward<float> norm;
    norm.rows = count;
    norm.width = width;
    norm.eps = 1e-12f;
    norm.x = x;
    norm.y.wide = x;
    kernels::Run(norm, 0, norm.Tiles());
  }
  if (kind == model::VectorNorm::kL2) return;
  const double root = std::sqrt(static_cast<double>(width));
  const float scale = static_cast<float>(kind == model::VectorNorm::kScale ? 1 / root : root);
  for (int64_t i = 0; i < count * width; ++i) x[i] *= scale;
}

void AddBias(const float* bias, int64_t rows, int64_t width, float* x) {
  for (int64_t row = 0; row < rows; ++row) kernels::AddTo(bias, width, x + row * width);
}

}  // namespace lattice::runtime
