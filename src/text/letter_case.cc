#include "text/letter_case.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace lattice::text {
namespace {

// Code points first, first + step, ..., last; each maps to itself + delta.
struct CaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t delta;
};

#include "text/letter_case.inc"

char32_t Map(std::span<const CaseRun> runs, uint32_t code) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), code,
                                      [](uint32_t value, const CaseRun& run) { return value < run.first; });
  if (after == runs.begin()) return code;
  const CaseRun& run = *std::prev(after);
  if (code > run.last || (code - run.first) % run.step != 0) return code;
  return static_cast<char32_t>(static_cast<int64_t>(code) + run.delta);
}

}  // namespace

char32_t ToLower(char32_t code) { return Map(kToLower, code); }
char32_t ToTitle(char32_t code) { return Map(kToTitle, code); }

}  // namespace lattice::text
