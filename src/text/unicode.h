// The three classes of characters that byte-level BPE splits words by.
#ifndef LATTICE_TEXT_UNICODE_H_
#define LATTICE_TEXT_UNICODE_H_

namespace lattice::text {

enum class CharClass { kLetter, kNumber, kSpace, kOther };

// Letters and numbers are the general categories L and N, spaces the property White_Space.
CharClass ClassOf(char32_t code);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_UNICODE_H_
