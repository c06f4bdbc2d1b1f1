// Classes of ASCII characters, whatever the locale; bytes beyond ASCII belong to none.
#ifndef LATTICE_BASE_ASCII_H_
#define LATTICE_BASE_ASCII_H_

namespace lattice {

constexpr bool IsAscii(char c) { return static_cast<unsigned char>(c) < 128; }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace lattice

#endif  // LATTICE_BASE_ASCII_H_
