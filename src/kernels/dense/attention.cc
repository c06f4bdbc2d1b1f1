// Attention of a few queries over the keys and values that they share.
//
// Scores are kept key by key, [key][row]. A key is multiplied with all queries while it is in registers, and so is a value
// with all weights. One query at a time, keys that three heads share were read three times from L2, and every dot product
// waited for its own sum of lanes: 98 cycles a query and key of width 64 instead of 27, and prompts of 2,048 tokens of
// SmolLM2-135M took 1.7 times as long (float32, one AVX-512 core, another program beside it).
#include "kernels/dense/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/attention.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/dense/columns-inl.h"
#include "kernels/engine/arena.h"
#include "kernels/engine/vec-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;

// Keys whose products with a query are summed together.
constexpr int kKeys = static_cast<int>(kGroup<float>);
// Queries that are multiplied with them at a time: as many as there are registers for.
constexpr int kQueries = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
// Keys whose values stay in the L1 cache while their columns are added.
constexpr int64_t kBlock = 32;

// R queries, of which those beyond p.row_count repeat the first.
template <int R>
class Attention {
 public:
  explicit Attention(const AttentionRows& p) : p_(p), last_{p.keys, p.values, 0} {
    int64_t before = 0;
    for (int64_t r = 0; r < p.before_count; ++r) before += p.before[r].count;
    for (int r = 0; r < R; ++r) {
      const auto& row = p.rows[static_cast<size_t>(r < p.row_count ? r : 0)];
      q_[r] = row.q;
      seen_[r] = before + row.count;
      last_.count = std::max(last_.count, row.count);
      least_ = std::min(least_, seen_[r]);
    }
    most_ = before + last_.count;
    padded_ = RoundUp(most_ * R, kPeriod);
    columns_ = RoundUp(p.width, kVector);
    (void)PlaceInArena<float>([&](Layout<float>& place) {
      scores_ = place.Take(static_cast<size_t>(padded_));
      sums_ = place.Take(static_cast<size_t>(R * columns_));
    });
  }

  void Run() {
    Score();
    Weigh();
    AddValues();
  }

 private:
  static constexpr int64_t kVector = static_cast<int64_t>(kLanes<float>);
  // Scores after which vectors hold the same rows in the same lanes again.
  static constexpr int64_t kPeriod = HWY_MAX(R, kVector);

  static int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

  // work(first key of the range, its place among all keys, range) for all ranges.
  template <class Work>
  HWY_INLINE void OverRanges(const Work& work) const {
    int64_t place = 0;
    for (int64_t r = 0; r <= p_.before_count; ++r) {
      const KeyRange& range = r < p_.before_count ? p_.before[r] : last_;
      work(range, place);
      place += range.count;
    }
  }

  // scores = scale <q, k>, and minus infinity where a row does not see the key, and behind the last one.
  void Score() {
    OverRanges([&](const KeyRange& range, int64_t place) HWY_ATTR {
      for (int64_t i = 0; i < range.count; i += kKeys) {
        const float* keys[kKeys];
        for (int k = 0; k < kKeys; ++k) keys[k] = range.keys + std::min(i + k, range.count - 1) * p_.stride;
        const auto count = static_cast<int>(std::min<int64_t>(kKeys, range.count - i));
        for (int r = 0; r < R; r += HWY_MIN(R, kQueries))
          ScoreKeys(keys, count, r, scores_ + (place + i) * R + r);
      }
    });
    for (int r = 0; r < R; ++r) {
      for (int64_t i = seen_[r]; i < most_; ++i) scores_[i * R + r] = -HUGE_VALF;
    }
    std::fill(scores_ + most_ * R, scores_ + padded_, -HUGE_VALF);
  }

  // Scores of the queries from `first` on with the first `count` of kKeys keys.
  HWY_INLINE void ScoreKeys(const float* const (&keys)[kKeys], int count, int first, float* out) const {
    constexpr int Q = HWY_MIN(R, kQueries);
    const F32 d;
    Vec<float> sum[Q][kKeys];
    LATTICE_UNROLL for (int r = 0; r < Q; ++r) {
      LATTICE_UNROLL for (int k = 0; k < kKeys; ++k) sum[r][k] = hn::Zero(d);
    }
    OverColumns(d, p_.width, [&](int64_t c, auto io) HWY_ATTR {
      Vec<float> key[kKeys];
      LATTICE_UNROLL for (int k = 0; k < kKeys; ++k) key[k] = io.Load(keys[k] + c);
      LATTICE_UNROLL for (int r = 0; r < Q; ++r) {
        const auto query = io.Load(q_[first + r] + c);
        LATTICE_UNROLL for (int k = 0; k < kKeys; ++k) sum[r][k] = hn::MulAdd(query, key[k], sum[r][k]);
      }
    });
    LATTICE_UNROLL for (int r = 0; r < Q; ++r) {
      float dots[kKeys];
      hn::StoreU(SumRows<float>(sum[r]), hn::FixedTag<float, kKeys>(), dots);
      for (int k = 0; k < count; ++k) out[k * R + r] = p_.scale * dots[k];
    }
  }

  // scores = exp(scores - the largest of the row), and the inverse of their sum.
  void Weigh() {
    const F32 d;
    HWY_ALIGN float tops[kPeriod];
    for (int64_t lane = 0; lane < kPeriod; lane += kVector) {
      auto top = hn::Set(d, -HUGE_VALF);
      for (int64_t i = lane; i < padded_; i += kPeriod) {
        const auto score = hn::Load(d, scores_ + i);
        top = hn::IfThenElse(hn::Gt(score, top), score, top);  // a NaN is left for later
      }
      hn::Store(top, d, tops + lane);
    }
    for (int r = 0; r < R; ++r) {
      float top = tops[r];
      for (int64_t i = r; i < kPeriod; i += R) top = std::max(top, tops[i]);
      for (int64_t i = r; i < kPeriod; i += R) tops[i] = top;
    }
    for (int64_t lane = 0; lane < kPeriod; lane += kVector) {
      const auto top = hn::Load(d, tops + lane);
      for (int64_t i = lane; i < padded_; i += kPeriod)
        hn::Store(ExpOrNan(hn::Sub(hn::Load(d, scores_ + i), top)), d, scores_ + i);
    }
    // Every fourth key in a sum of its own, in the same order for any number of rows.
    float sums[4][R] = {};
    for (int64_t i = 0; i < most_; ++i) {
      LATTICE_UNROLL for (int r = 0; r < R; ++r) sums[i % 4][r] += scores_[i * R + r];
    }
    for (int r = 0; r < R; ++r) inverse_[r] = 1 / ((sums[0][r] + sums[2][r]) + (sums[1][r] + sums[3][r]));
  }

  // Highway's Exp makes 0 of NaN.
  static HWY_INLINE Vec<float> ExpOrNan(Vec<float> x) {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(F32(), x));
  }

  // y = sum of scores V times the inverse, the keys one after the other for every column.
  void AddValues() {
    const F32 d;
    std::fill(sums_, sums_ + R * columns_, 0.0f);
    OverRanges([&](const KeyRange& range, int64_t place) HWY_ATTR {
      const int64_t shared = std::min(range.count, least_ - place);  // all rows see these
      for (int64_t i = 0; i < shared; i += kBlock)
        AddBlock(range.values + i * p_.stride, std::min(kBlock, shared - i), scores_ + (place + i) * R);
      for (int64_t i = std::max<int64_t>(shared, 0); i < range.count; ++i) {
        for (int r = 0; r < R; ++r) {
          if (place + i < seen_[r]) AddOne(range.values + i * p_.stride, scores_[(place + i) * R + r], r);
        }
      }
    });
    for (int r = 0; r < p_.row_count; ++r) {
      float* y = p_.rows[static_cast<size_t>(r)].y;
      OverColumns(d, p_.width, [&](int64_t c, auto io) HWY_ATTR {
        io.Store(hn::Mul(hn::Load(d, sums_ + r * columns_ + c), hn::Set(d, inverse_[r])), y + c);
      });
    }
  }

  HWY_INLINE void AddBlock(const float* values, int64_t count, const float* weights) const {
    const F32 d;
    OverColumns(d, p_.width, [&](int64_t c, auto io) HWY_ATTR {
      Vec<float> sum[R];
      LATTICE_UNROLL for (int r = 0; r < R; ++r) sum[r] = hn::Load(d, sums_ + r * columns_ + c);
      for (int64_t i = 0; i < count; ++i) {
        const auto value = io.Load(values + i * p_.stride + c);
        LATTICE_UNROLL for (int r = 0; r < R; ++r) sum[r] =
            hn::MulAdd(hn::Set(d, weights[i * R + r]), value, sum[r]);
      }
      LATTICE_UNROLL for (int r = 0; r < R; ++r) hn::Store(sum[r], d, sums_ + r * columns_ + c);
    });
  }

  HWY_INLINE void AddOne(const float* value, float weight, int r) const {
    const F32 d;
    float* sum = sums_ + r * columns_;
    OverColumns(d, p_.width, [&](int64_t c, auto io) HWY_ATTR {
      hn::Store(hn::MulAdd(hn::Set(d, weight), io.Load(value + c), hn::Load(d, sum + c)), d, sum + c);
    });
  }

  const AttentionRows& p_;
  KeyRange last_;
  const float* q_[R];
  int64_t seen_[R];
  float inverse_[R];
  int64_t least_ = INT64_MAX, most_ = 0;  // keys that all rows see, and that one row sees
  int64_t padded_ = 0, columns_ = 0;
  float* scores_ = nullptr;  // [padded_], of which [most_][R] are used
  float* sums_ = nullptr;    // [R][columns_]
};

void AttendTo(const AttentionRows& p) {
  if (p.row_count > 4) {
    Attention<8>(p).Run();
  } else if (p.row_count > 2) {
    Attention<4>(p).Run();
  } else if (p.row_count == 2) {
    Attention<2>(p).Run();
  } else if (p.row_count == 1) {
    Attention<1>(p).Run();
  }
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(AttendTo);

void Attend(const AttentionRows& p) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(AttendTo)(p);
}

}  // namespace lattice::kernels
#endif
