// OverColumns: a SIMD loop over the columns of a row. A last vector that is not full is padded with zeros and
// computed like all others, so every column is rounded the same way, whatever the width of the row and of the
// instruction set's vectors.
//
// Included once per instruction set (Highway); no include guard of the usual form.
#if defined(LATTICE_KERNELS_DENSE_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LATTICE_KERNELS_DENSE_COLUMNS_INL_H_
#undef LATTICE_KERNELS_DENSE_COLUMNS_INL_H_
#else
#define LATTICE_KERNELS_DENSE_COLUMNS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/dense/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loads and stores of a full vector, for the body of OverColumns. Memory may hold another type than is
// computed in (bfloat16 in uint16_t).
template <class D>
struct WholeVector {
  D d;

  template <typename S>
  HWY_INLINE hn::Vec<D> Load(const S* p) const {
    return LoadAs(d, p);
  }
  template <typename S>
  HWY_INLINE void Store(hn::Vec<D> v, S* p) const {
    StoreAs(v, d, p);
  }
  // v in the columns of the row, `rest` in the padding: for a sum or a maximum that the padding would spoil.
  HWY_INLINE hn::Vec<D> Or(hn::Vec<D> v, float /*rest*/) const { return v; }
};

// Loads and stores of the last `count` columns of a row, through a padded copy.
template <class D>
struct PartOfVector {
  D d;
  int64_t count;

  template <typename S>
  HWY_INLINE hn::Vec<D> Load(const S* p) const {
    S padded[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
    std::copy_n(p, count, padded);
    return LoadAs(d, padded);
  }
  template <typename S>
  HWY_INLINE void Store(hn::Vec<D> v, S* p) const {
    S padded[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    StoreAs(v, d, padded);
    std::copy_n(padded, count, p);
  }
  HWY_INLINE hn::Vec<D> Or(hn::Vec<D> v, float rest) const {
    return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), v,
                          hn::Set(d, static_cast<hn::TFromD<D>>(rest)));
  }
};

// Calls body(i, io) for every vector of columns, i being its first. The body is a generic lambda,
// [&](int64_t i, auto io) HWY_ATTR { ... }, and loads and stores through io only.
template <class D, class Body>
HWY_INLINE void OverColumns(D d, int64_t n, const Body& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, WholeVector<D>{d});
  if (i < n) body(i, PartOfVector<D>{d, n - i});
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LATTICE_KERNELS_DENSE_COLUMNS_INL_H_
