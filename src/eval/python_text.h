// The Python string methods that the definitions of the tasks use. Text is UTF-8; a byte that is not part of
// a valid character counts as a character.
#ifndef LATTICE_EVAL_PYTHON_TEXT_H_
#define LATTICE_EVAL_PYTHON_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace lattice::eval {

// str.strip(): without white space at both ends.
std::string_view Strip(std::string_view text);
// Bytes of white space at the end: len(text) - len(text.rstrip()).
size_t TrailingSpace(std::string_view text);
// len()
int64_t CodePoints(std::string_view text);
// str.capitalize(): the first character in title case, the others in lower case, by full case mapping.
std::string Capitalize(std::string_view text);
// str.replace(): one pass from left to right.
std::string Replace(std::string_view text, std::string_view from, std::string_view to);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_PYTHON_TEXT_H_
