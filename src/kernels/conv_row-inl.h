// One row of a short convolution: out[c] = bias[c] + sum_j weight[j,c] rows[j][c], j from 0.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_CONV_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_CONV_ROW_INL_H_
#undef LATTICE_KERNELS_CONV_ROW_INL_H_
#else
#define LATTICE_KERNELS_CONV_ROW_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Row t of the sequence that begins at `x`; rows before it come from `past` [W-1,C], null when there is none.
template <typename S>
HWY_INLINE const S* SequenceRow(const S* x, const S* past, int64_t width, int64_t channels, int64_t t) {
  if (t >= 0) return x + t * channels;
  return past == nullptr ? nullptr : past + (width - 1 + t) * channels;
}

// rows[j] may be null: zeros.
template <typename T, typename S>
HWY_INLINE void ConvRow(const S* const* rows, int64_t width, const T* weight, const T* bias, int64_t channels,
                        T* out) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t c = 0;
  for (; c + N <= channels; c += N) {
    auto sum = hn::LoadU(d, bias + c);
    for (int64_t j = 0; j < width; ++j) {
      if (rows[j] == nullptr) continue;
      sum = hn::MulAdd(hn::LoadU(d, weight + j * channels + c), LoadAs(d, rows[j] + c), sum);
    }
    hn::StoreU(sum, d, out + c);
  }
  for (; c < channels; ++c) {
    T sum = bias[c];
    for (int64_t j = 0; j < width; ++j) {
      if (rows[j] != nullptr) sum = std::fma(weight[j * channels + c], Get(rows[j][c]), sum);
    }
    out[c] = sum;
  }
}

// out[c] (+)= a[c] b[c] over the channels.
template <bool kAdd, typename T, typename S>
HWY_INLINE void MulRows(const T* a, const S* b, int64_t channels, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t N = hn::Lanes(d);
  int64_t c = 0;
  for (; c + N <= channels; c += N) {
    const auto x = hn::LoadU(d, a + c), y = LoadAs(d, b + c);
    hn::StoreU(kAdd ? hn::MulAdd(x, y, hn::LoadU(d, out + c)) : hn::Mul(x, y), d, out + c);
  }
  for (; c < channels; ++c) out[c] = kAdd ? std::fma(a[c], Get(b[c]), out[c]) : a[c] * Get(b[c]);
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

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_CONV_ROW_INL_H_
