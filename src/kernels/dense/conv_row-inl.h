// Row operations that the short convolutions and their gradients share. A problem
// (kernels/dense/short_conv.h, kernels/dense/unit_conv.h) has batch, time, channels and width, and is
// computed in tiles of kTileRows rows.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_DENSE_CONV_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_DENSE_CONV_ROW_INL_H_
#undef LATTICE_KERNELS_DENSE_CONV_ROW_INL_H_
#else
#define LATTICE_KERNELS_DENSE_CONV_ROW_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Tokens [begin, end) of sequence b.
struct TileRange {
  int64_t b, begin, end;
};
template <class Problem>
HWY_INLINE TileRange RangeOf(const Problem& p, int64_t tile) {
  const int64_t b = tile / p.TilesPerSequence(), begin = tile % p.TilesPerSequence() * p.kTileRows;
  return {b, begin, std::min(p.time, begin + p.kTileRows)};
}

// The window of rows that a convolution of sequence b reads: rows of x [B,T,C], and of past [B,W-1,C] before
// its first token.
template <class Problem>
class ConvWindow {
 public:
  ConvWindow(const Problem& p, int64_t b)
      : channels_(p.channels),
        x_(p.x + b * p.time * p.channels),
        past_(p.past == nullptr ? nullptr : p.past + b * (p.width - 1) * p.channels),
        rows_(static_cast<size_t>(p.width)) {}

  // The W rows that the convolution at time t reads, oldest first; null where there is none.
  const auto* At(int64_t t) {
    const auto width = static_cast<int64_t>(rows_.size());
    for (int64_t j = 0; j < width; ++j) {
      const int64_t row = t - width + 1 + j;
      rows_[static_cast<size_t>(j)] = row >= 0           ? x_ + row * channels_
                                      : past_ == nullptr ? nullptr
                                                         : past_ + (width - 1 + row) * channels_;
    }
    return rows_.data();
  }

 private:
  using Row = decltype(Problem::x);
  const int64_t channels_;
  const Row x_, past_;
  std::vector<Row> rows_;
};

// out[c] = bias[c] + sum_j weight[j,c] rows[j][c], summed from j = 0 on. A null rows[j] stands for zeros.
template <typename T, typename S>
HWY_INLINE void ConvRow(const S* const* rows, int64_t width, const T* weight, const T* bias, int64_t channels,
                        T* out) {
  const hn::ScalableTag<T> d;
  OverColumns(d, channels, [&](int64_t c, auto io) HWY_ATTR {
    auto sum = io.Load(bias + c);
    for (int64_t j = 0; j < width; ++j) {
      if (rows[j] == nullptr) continue;
      sum = hn::MulAdd(io.Load(weight + j * channels + c), io.Load(rows[j] + c), sum);
    }
    io.Store(sum, out + c);
  });
}

// out[c] (+)= a[c] b[c] over the channels.
template <bool kAdd, typename T, typename S>
HWY_INLINE void MulRows(const T* a, const S* b, int64_t channels, T* out) {
  OverColumns(hn::ScalableTag<T>(), channels, [&](int64_t c, auto io) HWY_ATTR {
    const auto x = io.Load(a + c), y = io.Load(b + c);
    io.Store(kAdd ? hn::MulAdd(x, y, io.Load(out + c)) : hn::Mul(x, y), out + c);
  });
}

// out[c] += a[c]
template <typename T>
HWY_INLINE void AddRow(const T* a, int64_t channels, T* out) {
  OverColumns(hn::ScalableTag<T>(), channels, [&](int64_t c, auto io) HWY_ATTR {
    io.Store(hn::Add(io.Load(out + c), io.Load(a + c)), out + c);
  });
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_CONV_ROW_INL_H_
