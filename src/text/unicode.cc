#include "text/unicode.h"

#include <array>
#include <cstdint>
#include <span>
#include <sstream>

#include "text/code_range.h"

namespace lattice::text {
namespace {

#include "text/unicode_ranges.inc"

constexpr CodeRange kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                 {0x205F, 0x205F}, {0x3000, 0x3000}};

std::span<const CodeRange> RangesOf(CharClass kind) {
  switch (kind) {
    case CharClass::kSpace:
      return kSpaces;
    case CharClass::kLetter:
      return kLetters;
    case CharClass::kNumber:
      return kNumbers;
    case CharClass::kOther:
      break;
  }
  return {};
}

CharClass Search(uint32_t code) {
  if (Contains(kSpaces, code)) return CharClass::kSpace;
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

std::string BracketOf(CharClass kind) {
  std::ostringstream out;
  out << std::hex << std::uppercase;
  for (const CodeRange& range : RangesOf(kind)) {
    out << "\\x{" << range.first << "}";
    if (range.last != range.first) out << "-\\x{" << range.last << "}";
  }
  return out.str();
}

}  // namespace lattice::text
