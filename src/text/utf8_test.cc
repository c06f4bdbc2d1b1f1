#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/unicode.h"

namespace lattice::text {
namespace {

using Kind = Utf8Char::Kind;

TEST(Utf8, EveryCodePointRoundTrips) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendUtf8(code, text);
    const Utf8Char c = DecodeUtf8(text);
    ASSERT_EQ(c.kind, Kind::kValid) << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.length, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(DecodeUtf8(std::string_view(text).substr(0, cut)).kind, Kind::kIncomplete);
      ASSERT_EQ(IncompleteTail(std::string_view(text).substr(0, cut)), cut);
    }
    ASSERT_EQ(IncompleteTail(text), 0u);
  }
}

TEST(Utf8, WrongBytesAreInvalid) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x99("}) {
    EXPECT_EQ(DecodeUtf8(text).kind, Kind::kInvalid) << text;
  }
  EXPECT_EQ(DecodeUtf8("\xE2\x82(").length, 2u);
}

TEST(Utf8, ReplacesAndCounts) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xff\xc3\xa9\xe2\x82z\xf0\x9f"),
            "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbdz\xef\xbf\xbd");
  EXPECT_EQ(ReplaceInvalidUtf8(""), "");
  EXPECT_EQ(CountInvalidUtf8("a\xff\xc3\xa9\xe2\x82z\xf0\x9f"), 5u);
  EXPECT_EQ(CountInvalidUtf8("plain"), 0u);
  EXPECT_EQ(IncompleteTail("abc\xe2\x82"), 2u);
  EXPECT_EQ(IncompleteTail("\xff\xff"), 0u);
  EXPECT_EQ(IncompleteTail("\xe2\x82\xff"), 0u);
}

TEST(Unicode, ClassesOfSomeCharacters) {
  for (const char32_t code : {U'a', U'Z', U'é', U'ß', U'日', U'ж', U'א', U'ª', U'\U00010400'}) {
    EXPECT_EQ(ClassOf(code), CharClass::kLetter) << static_cast<uint32_t>(code);
  }
  for (const char32_t code : {U'0', U'9', U'²', U'½', U'Ⅷ', U'٣', U'\U0001D7D9'}) {
    EXPECT_EQ(ClassOf(code), CharClass::kNumber) << static_cast<uint32_t>(code);
  }
  for (const char32_t code :
       {U' ', U'\t', U'\n', U'\r', U'\u0085', U'\u00A0', U'\u2003', U'\u3000', U'\u2028'}) {
    EXPECT_EQ(ClassOf(code), CharClass::kSpace) << static_cast<uint32_t>(code);
  }
  for (const char32_t code :
       {U'!', U'_', U'\0', U'\x1c', U'\u0301', U'\u200B', U'\uFEFF', U'🙂', U'\U0010FFFF'}) {
    EXPECT_EQ(ClassOf(code), CharClass::kOther) << static_cast<uint32_t>(code);
  }
}

// The number of characters per class in Unicode 14, counted by another program.
TEST(Unicode, TablesAreWhole) {
  int letters = 0, numbers = 0, spaces = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    const CharClass kind = ClassOf(code);
    letters += kind == CharClass::kLetter;
    numbers += kind == CharClass::kNumber;
    spaces += kind == CharClass::kSpace;
  }
  EXPECT_EQ(letters, 131'756);
  EXPECT_EQ(numbers, 1'791);
  EXPECT_EQ(spaces, 25);
}

}  // namespace
}  // namespace lattice::text
