// Looks up Unicode's full case mapping in generated tables.
#include "text/letter_case.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "text/code_range.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

// Code points first, first + step, ..., last; each maps to itself + delta.
struct CaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t delta;
};

// A code point that becomes two or three; the third is 0 when there are two.
struct CaseExpansion {
  uint32_t code;
  uint32_t first, second, third;
};

#include "text/letter_case.inc"

// The last row whose code points begin at or before `code`, or null. Rows are in order of `begin`.
template <typename Row>
const Row* RowAt(std::span<const Row> rows, uint32_t Row::*begin, uint32_t code) {
  const auto after = std::upper_bound(rows.begin(), rows.end(), code,
                                      [begin](uint32_t value, const Row& row) { return value < row.*begin; });
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

void AppendMapped(std::span<const CaseRun> runs, std::span<const CaseExpansion> expansions, uint32_t code,
                  std::string& out) {
  const CaseExpansion* expansion = RowAt(expansions, &CaseExpansion::code, code);
  if (expansion != nullptr && expansion->code == code) {
    AppendUtf8(expansion->first, out);
    AppendUtf8(expansion->second, out);
    if (expansion->third != 0) AppendUtf8(expansion->third, out);
    return;
  }
  const CaseRun* run = RowAt(runs, &CaseRun::first, code);
  const bool maps = run != nullptr && code <= run->last && (code - run->first) % run->step == 0;
  AppendUtf8(maps ? static_cast<char32_t>(static_cast<int64_t>(code) + run->delta) : code, out);
}

}  // namespace

void AppendLower(char32_t code, std::string& out) { AppendMapped(kToLower, kLowerExpansions, code, out); }
void AppendTitle(char32_t code, std::string& out) { AppendMapped(kToTitle, kTitleExpansions, code, out); }

CaseRole CaseRoleOf(char32_t code) {
  if (Contains(kCased, code)) return CaseRole::kCased;
  return Contains(kCaseIgnorable, code) ? CaseRole::kIgnorable : CaseRole::kNone;
}

}  // namespace lattice::text
