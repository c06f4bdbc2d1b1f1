// Depthwise causal convolution and its gradients, a row of channels at a time.
#include "kernels/dense/short_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/short_conv.cc"
#include "hwy/foreach_target.h"

#include <algorithm>

#include "hwy/highway.h"
#include "kernels/dense/conv_row-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
HWY_INLINE void Forward(const ShortConv<T>& p, T* y, int64_t first, int64_t last) {
  for (int64_t tile = first; tile < last; ++tile) {
    const TileRange range = RangeOf(p, tile);
    ConvWindow rows(p, range.b);
    for (int64_t t = range.begin; t < range.end; ++t) {
      ConvRow(rows.At(t), p.width, p.weight, p.bias, p.channels, y + (range.b * p.time + t) * p.channels);
    }
  }
}

template <typename T>
HWY_INLINE void Backward(const ShortConv<T>& p, const T* dy, T* dx, T* partial, int64_t first, int64_t last) {
  const int64_t C = p.channels, W = p.width;
  for (int64_t tile = first; tile < last; ++tile) {
    const TileRange range = RangeOf(p, tile);
    ConvWindow rows(p, range.b);
    T* sums = partial + tile * (W + 1) * C;
    std::fill(sums, sums + (W + 1) * C, T(0));
    for (int64_t t = range.begin; t < range.end; ++t) {
      const T* dy_t = dy + (range.b * p.time + t) * C;
      T* dx_t = dx + (range.b * p.time + t) * C;
      AddRow(dy_t, C, sums + W * C);
      const T* const* under = rows.At(t);
      for (int64_t j = 0; j < W; ++j) {
        if (under[j] != nullptr) MulRows<true>(dy_t, under[j], C, sums + j * C);
      }
      // y[t + W-1-j] contains weight[j] x[t].
      MulRows<false>(p.weight + (W - 1) * C, dy_t, C, dx_t);
      for (int64_t later = 1; later < W && t + later < p.time; ++later) {
        MulRows<true>(p.weight + (W - 1 - later) * C, dy_t + later * C, C, dx_t);
      }
    }
  }
}

void ForwardF32(const ShortConv<float>& p, float* y, int64_t a, int64_t b) { Forward(p, y, a, b); }
void BackwardF32(const ShortConv<float>& p, const float* dy, float* dx, float* partial, int64_t a,
                 int64_t b) {
  Backward(p, dy, dx, partial, a, b);
}
#if HWY_HAVE_FLOAT64  // not in WebAssembly
void ForwardF64(const ShortConv<double>& p, double* y, int64_t a, int64_t b) { Forward(p, y, a, b); }
void BackwardF64(const ShortConv<double>& p, const double* dy, double* dx, double* partial, int64_t a,
                 int64_t b) {
  Backward(p, dy, dx, partial, a, b);
}
#endif

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(BackwardF32);

void ShortConvForward(const ShortConv<float>& conv, float* y, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF32)(conv, y, first, last);
}
void ShortConvBackward(const ShortConv<float>& conv, const float* dy, float* dx, float* partial,
                       int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF32)(conv, dy, dx, partial, first, last);
}

#if HWY_HAVE_FLOAT64
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF64);

void ShortConvForward(const ShortConv<double>& conv, double* y, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF64)(conv, y, first, last);
}
void ShortConvBackward(const ShortConv<double>& conv, const double* dy, double* dx, double* partial,
                       int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF64)(conv, dy, dx, partial, first, last);
}
#endif

}  // namespace lattice::kernels
#endif
