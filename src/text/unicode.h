// The three classes of characters that byte-level BPE splits words by.
#ifndef LATTICE_TEXT_UNICODE_H_
#define LATTICE_TEXT_UNICODE_H_

#include <string>

namespace lattice::text {

enum class CharClass { kLetter, kNumber, kSpace, kOther };

// Letters and numbers are the general categories L and N, spaces the property White_Space.
CharClass ClassOf(char32_t code);

// The characters of a class, other than kOther, as they stand between the brackets of a regular expression:
// \x{30}-\x{39}...
std::string BracketOf(CharClass kind);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_UNICODE_H_
