// Cross-entropy and its gradient in place: three passes over a row of logits that stays in cache.
#include "kernels/dense/softmax_loss.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/softmax_loss.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/isa.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename S>
HWY_INLINE float MaxOf(const S* x, int64_t n) {
  const hn::ScalableTag<float> d;
  auto most = hn::Set(d, -INFINITY);
  OverColumns(d, n,
              [&](int64_t i, auto io) HWY_ATTR { most = hn::Max(most, io.Or(io.Load(x + i), -INFINITY)); });
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// y = exp(x - shift); returns the sum. y may be x.
template <typename S>
HWY_INLINE float ExpSum(float shift, const S* x, int64_t n, float* y) {
  const hn::ScalableTag<float> d;
  auto sum = hn::Zero(d);
  OverColumns(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto e = hn::Exp(d, hn::Sub(io.Load(x + i), hn::Set(d, shift)));
    sum = hn::Add(sum, io.Or(e, 0));
    io.Store(e, y + i);
  });
  return SumLanes(d, sum);
}

// y = a x; y may be x.
template <typename S>
HWY_INLINE void ScaleRow(float a, const float* x, int64_t n, S* y) {
  const hn::ScalableTag<float> d;
  OverColumns(d, n,
              [&](int64_t i, auto io) HWY_ATTR { io.Store(hn::Mul(hn::Set(d, a), io.Load(x + i)), y + i); });
}

template <typename S>
HWY_INLINE void Rows(S* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
                     float* losses) {
  std::vector<float> wide(std::is_same_v<S, float> ? 0 : static_cast<size_t>(classes));
  for (int64_t row = 0; row < rows; ++row) {
    S* x = logits + row * classes;
    const int64_t target = targets[row];
    if (target < 0) {
      losses[row] = 0;
      std::fill(x, x + classes, S(0));
      continue;
    }
    float* exponentials = wide.data();
    if constexpr (std::is_same_v<S, float>) exponentials = x;
    const float most = MaxOf(x, classes), picked = Get(x[target]);
    const float sum = ExpSum(most, x, classes, exponentials), share = scale / sum;
    losses[row] = most - picked + std::log(sum);
    const float at_target = exponentials[target] * share - scale;
    ScaleRow(share, exponentials, classes, x);
    Put(at_target, x + target);
  }
}

void RowsF32(float* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
             float* losses) {
  Rows(logits, targets, rows, classes, scale, losses);
}
void RowsBf16(uint16_t* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
              float* losses) {
  Rows(logits, targets, rows, classes, scale, losses);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(RowsF32);
HWY_EXPORT(RowsBf16);

void SoftmaxLoss(float* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
                 float* losses) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(RowsF32)(logits, targets, rows, classes, scale, losses);
}
void SoftmaxLoss(uint16_t* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
                 float* losses) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(RowsBf16)(logits, targets, rows, classes, scale, losses);
}

}  // namespace lattice::kernels
#endif
