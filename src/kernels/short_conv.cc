#include "kernels/short_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/short_conv.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// out[c] (+)= a[c] b[c] over the channels.
template <bool kAdd, typename T>
HWY_INLINE void MulRows(const T* a, const T* b, int64_t channels, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t c = 0;
  for (; c + N <= channels; c += N) {
    const auto x = hn::LoadU(d, a + c), y = hn::LoadU(d, b + c);
    hn::StoreU(kAdd ? hn::MulAdd(x, y, hn::LoadU(d, out + c)) : hn::Mul(x, y), d, out + c);
  }
  for (; c < channels; ++c) out[c] = kAdd ? std::fma(a[c], b[c], out[c]) : a[c] * b[c];
}

template <typename T>
HWY_INLINE void AddRow(const T* a, int64_t channels, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t c = 0;
  for (; c + N <= channels; c += N)
    hn::StoreU(hn::Add(hn::LoadU(d, out + c), hn::LoadU(d, a + c)), d, out + c);
  for (; c < channels; ++c) out[c] += a[c];
}

// Row t of sequence b; rows before the first come from the past, null when there is none.
template <typename T>
HWY_INLINE const T* Row(const ShortConv<T>& p, int64_t b, int64_t t) {
  if (t >= 0) return p.x + (b * p.time + t) * p.channels;
  if (p.past == nullptr) return nullptr;
  return p.past + (b * (p.width - 1) + p.width - 1 + t) * p.channels;
}

struct TileRange {
  int64_t b, begin, end;
};
template <typename T>
HWY_INLINE TileRange RangeOf(const ShortConv<T>& p, int64_t tile) {
  const int64_t b = tile / p.TilesPerSequence(),
                begin = tile % p.TilesPerSequence() * ShortConv<T>::kTileRows;
  return {b, begin, std::min(p.time, begin + ShortConv<T>::kTileRows)};
}

template <typename T>
HWY_INLINE void Forward(const ShortConv<T>& p, T* y, int64_t first, int64_t last) {
  for (int64_t tile = first; tile < last; ++tile) {
    const TileRange range = RangeOf(p, tile);
    for (int64_t t = range.begin; t < range.end; ++t) {
      T* out = y + (range.b * p.time + t) * p.channels;
      std::copy(p.bias, p.bias + p.channels, out);
      for (int64_t j = 0; j < p.width; ++j) {
        const T* row = Row(p, range.b, t - p.width + 1 + j);
        if (row != nullptr) MulRows<true>(p.weight + j * p.channels, row, p.channels, out);
      }
    }
  }
}

template <typename T>
HWY_INLINE void Backward(const ShortConv<T>& p, const T* dy, T* dx, T* partial, int64_t first, int64_t last) {
  const int64_t C = p.channels, W = p.width;
  for (int64_t tile = first; tile < last; ++tile) {
    const TileRange range = RangeOf(p, tile);
    T* sums = partial + tile * (W + 1) * C;
    std::fill(sums, sums + (W + 1) * C, T(0));
    for (int64_t t = range.begin; t < range.end; ++t) {
      const T* dy_t = dy + (range.b * p.time + t) * C;
      T* dx_t = dx + (range.b * p.time + t) * C;
      AddRow(dy_t, C, sums + W * C);
      for (int64_t j = 0; j < W; ++j) {
        const T* row = Row(p, range.b, t - W + 1 + j);
        if (row != nullptr) MulRows<true>(dy_t, row, C, sums + j * C);
      }
      // x[t] stands under weight j in y[t + W-1-j].
      MulRows<false>(p.weight + (W - 1) * C, dy_t, C, dx_t);
      for (int64_t later = 1; later < W && t + later < p.time; ++later) {
        MulRows<true>(p.weight + (W - 1 - later) * C, dy_t + later * C, C, dx_t);
      }
    }
  }
}

void ForwardF32(const ShortConv<float>& p, float* y, int64_t a, int64_t b) { Forward(p, y, a, b); }
void ForwardF64(const ShortConv<double>& p, double* y, int64_t a, int64_t b) { Forward(p, y, a, b); }
void BackwardF32(const ShortConv<float>& p, const float* dy, float* dx, float* partial, int64_t a,
                 int64_t b) {
  Backward(p, dy, dx, partial, a, b);
}
void BackwardF64(const ShortConv<double>& p, const double* dy, double* dx, double* partial, int64_t a,
                 int64_t b) {
  Backward(p, dy, dx, partial, a, b);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardF64);

void ShortConvForward(const ShortConv<float>& conv, float* y, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF32)(conv, y, first, last);
}
void ShortConvForward(const ShortConv<double>& conv, double* y, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ForwardF64)(conv, y, first, last);
}
void ShortConvBackward(const ShortConv<float>& conv, const float* dy, float* dx, float* partial,
                       int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF32)(conv, dy, dx, partial, first, last);
}
void ShortConvBackward(const ShortConv<double>& conv, const double* dy, double* dx, double* partial,
                       int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(BackwardF64)(conv, dy, dx, partial, first, last);
}

}  // namespace lattice::kernels
#endif
