// Bytes as printable characters, which byte-level vocabularies (GPT-2) are written with: bytes that print stand for
// themselves, the others are numbered from U+0100 on.
#ifndef LATTICE_TEXT_BYTE_CHARACTERS_H_
#define LATTICE_TEXT_BYTE_CHARACTERS_H_

#include <array>

namespace lattice::text {

// The character that stands for each byte.
inline std::array<char32_t, 256> ByteCharacters() {
  const auto prints = [](int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  };
  std::array<char32_t, 256> characters;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    characters[byte] = prints(byte) ? static_cast<char32_t>(byte) : next++;
  return characters;
}

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BYTE_CHARACTERS_H_
