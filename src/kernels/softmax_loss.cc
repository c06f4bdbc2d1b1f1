#include "kernels/softmax_loss.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax_loss.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float MaxOf(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t N = hn::Lanes(d);
  auto most = hn::Set(d, -INFINITY);
  int64_t i = 0;
  for (; i + N <= n; i += N) most = hn::Max(most, hn::LoadU(d, x + i));
  float result = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

// x = exp(x - shift); returns the sum.
HWY_INLINE float ExpSum(float shift, float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t N = hn::Lanes(d);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    sum = hn::Add(sum, e);
    hn::StoreU(e, d, x + i);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += x[i] = std::exp(x[i] - shift);
  return total;
}

HWY_INLINE void ScaleRow(float a, float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t N = hn::Lanes(d);
  int64_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(hn::Mul(hn::Set(d, a), hn::LoadU(d, x + i)), d, x + i);
  for (; i < n; ++i) x[i] *= a;
}

void Rows(float* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale, float* losses) {
  for (int64_t row = 0; row < rows; ++row) {
    float* x = logits + row * classes;
    const int64_t target = targets[row];
    if (target < 0) {
      losses[row] = 0;
      std::fill(x, x + classes, 0.0f);
      continue;
    }
    const float most = MaxOf(x, classes), picked = x[target];
    const float sum = ExpSum(most, x, classes);
    losses[row] = most - picked + std::log(sum);
    ScaleRow(scale / sum, x, classes);
    x[target] -= scale;
  }
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(Rows);

void SoftmaxLoss(float* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
                 float* losses) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(Rows)(logits, targets, rows, classes, scale, losses);
}

}  // namespace lattice::kernels
#endif
