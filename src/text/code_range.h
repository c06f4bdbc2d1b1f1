// Sets of code points as sorted ranges, the form of the tables of Unicode properties.
#ifndef LATTICE_TEXT_CODE_RANGE_H_
#define LATTICE_TEXT_CODE_RANGE_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace lattice::text {

struct CodeRange {
  uint32_t first;
  uint32_t last;
};

// `ranges` are in ascending order.
inline bool Contains(std::span<const CodeRange> ranges, uint32_t code) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](uint32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

}  // namespace lattice::text

#endif  // LATTICE_TEXT_CODE_RANGE_H_
