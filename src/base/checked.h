// Arithmetic on sizes that come from outside (files, configs, callers), which reports overflow instead of
// being undefined.
#ifndef LATTICE_BASE_CHECKED_H_
#define LATTICE_BASE_CHECKED_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"

namespace lattice {

// a * b or a + b, or nothing when the result does not fit.
template <std::integral T>
std::optional<T> TryMul(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
std::optional<T> TryAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// The same, but overflow throws Error, which says `what` was being computed.
template <std::integral T>
T CheckedMul(T a, T b, std::string_view what) {
  const std::optional<T> result = TryMul(a, b);
  Check(result.has_value(), "[size] ", what, " overflows: ", a, " * ", b);
  return *result;
}

template <std::integral T>
T CheckedAdd(T a, T b, std::string_view what) {
  const std::optional<T> result = TryAdd(a, b);
  Check(result.has_value(), "[size] ", what, " overflows: ", a, " + ", b);
  return *result;
}

// Number of elements of a shape: nothing when an extent is negative or the product of the nonzero extents
// does not fit, so that {huge, huge, 0} is refused as well. The empty shape is a scalar: 1.
inline std::optional<int64_t> TryElements(std::span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    const std::optional<int64_t> next = TryMul(product, extent);
    if (!next) return std::nullopt;
    product = *next;
  }
  return empty ? 0 : product;
}

}  // namespace lattice

#endif  // LATTICE_BASE_CHECKED_H_
