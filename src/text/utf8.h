// UTF-8 that may be wrong: what is a character, what is not, and what may become one with more bytes.
#ifndef LATTICE_TEXT_UTF8_H_
#define LATTICE_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace lattice::text {

struct Utf8Char {
  enum class Kind {
    kValid,
    kInvalid,     // `length` bytes can never be part of a character (the maximal part that looked like one)
    kIncomplete,  // the text ends inside what may be a character
  };
  Kind kind;
  char32_t code;  // when valid
  size_t length;  // bytes, at least 1
};

// What stands at the start of `text`, which must not be empty.
Utf8Char DecodeUtf8(std::string_view text);

void AppendUtf8(char32_t code, std::string& out);

// Bytes at the end of `text` that may be the start of a character: 0 to 3.
size_t IncompleteTail(std::string_view text);

// The text with every wrong part, an unfinished end included, replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// Bytes that belong to no character.
size_t CountInvalidUtf8(std::string_view text);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_UTF8_H_
