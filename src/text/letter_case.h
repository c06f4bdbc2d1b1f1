// Lower and title case by Unicode's full case mapping, independent of any locale.
#ifndef LATTICE_TEXT_LETTER_CASE_H_
#define LATTICE_TEXT_LETTER_CASE_H_

#include <string>

namespace lattice::text {

// Append the mapped character as UTF-8: one character, or two or three for those that have no single
// counterpart (sharp s in title case is "Ss"). Characters without the other case do not change.
void AppendLower(char32_t code, std::string& out);
void AppendTitle(char32_t code, std::string& out);

// The lower case of a capital sigma is different at the end of a word. It ends a word when, not counting
// ignorable characters (marks, apostrophes, ..), a cased character precedes it and none follows it.
inline constexpr char32_t kCapitalSigma = 0x3A3;
inline constexpr char32_t kFinalSigma = 0x3C2;
enum class CaseRole { kNone, kCased, kIgnorable };
CaseRole CaseRoleOf(char32_t code);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_LETTER_CASE_H_
