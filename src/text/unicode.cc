#include "text/unicode.h"

#include <array>
#include <cstdint>

#include "text/code_range.h"

namespace lattice::text {
namespace {

#include "text/unicode_ranges.inc"

bool IsSpace(uint32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

CharClass Search(uint32_t code) {
  if (IsSpace(code)) return CharClass::kSpace;
  if (Contains(kLetters, code)) return CharClass::kLetter;
  return Contains(kNumbers, code) ? CharClass::kNumber : CharClass::kOther;
}

// Characters below this are looked up in a table instead of by binary search, because most text is Latin.
constexpr uint32_t kTableSize = 0x180;

}  // namespace

CharClass ClassOf(char32_t code) {
  static const auto kTable = [] {
    std::array<CharClass, kTableSize> table;
    for (uint32_t i = 0; i < kTableSize; ++i) table[i] = Search(i);
    return table;
  }();
  return code < kTableSize ? kTable[code] : Search(code);
}

}  // namespace lattice::text
