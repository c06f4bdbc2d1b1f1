// Lower and title case of single characters, independent of any locale.
#ifndef LATTICE_TEXT_LETTER_CASE_H_
#define LATTICE_TEXT_LETTER_CASE_H_

namespace lattice::text {

// The mappings of one character to one. Characters that would become several (such as sharp s in title case)
// and those without the other case come back as they are.
char32_t ToLower(char32_t code);
char32_t ToTitle(char32_t code);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_LETTER_CASE_H_
