// Decoding of possibly invalid UTF-8: valid characters, invalid bytes, and incomplete characters at the end.
#ifndef LATTICE_TEXT_UTF8_H_
#define LATTICE_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace lattice::text {

struct Utf8Char {
  enum class Kind {
    kValid,
    kInvalid,     // `length` bytes cannot be part of a character (the longest prefix that looked like one)
    kIncomplete,  // the text ends inside a possible character
  };
  Kind kind;
  char32_t code;  // when valid
  size_t length;  // bytes, at least 1
};

// Decodes the start of `text`, which must not be empty.
Utf8Char DecodeUtf8(std::string_view text);

void AppendUtf8(char32_t code, std::string& out);

// Bytes at the end of `text` that may be the start of a character: 0 to 3.
size_t IncompleteTail(std::string_view text);

// The text with every invalid part, including an incomplete end, replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// The number of bytes that are not part of a valid character.
size_t CountInvalidUtf8(std::string_view text);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_UTF8_H_
