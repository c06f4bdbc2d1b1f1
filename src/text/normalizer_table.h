// The table of replacements in a SentencePiece model ("precompiled_charsmap"), which its library applies to a
// text before it looks for pieces, and trusts.
//
// Layout, little-endian: 4 bytes with the size of the trie in bytes; the trie, a double array of 32-bit units
// whose keys are the texts to replace and whose values are offsets of replacements; then the replacements,
// each ended by a NUL.
#ifndef LATTICE_TEXT_NORMALIZER_TABLE_H_
#define LATTICE_TEXT_NORMALIZER_TABLE_H_

#include <string_view>

namespace lattice::text {

// Throws Error that starts with "[sentencepiece] `source`" unless no text can lead the library outside of the
// table: every unit that a text reaches has all its 256 possible successors in the trie, the trie has no
// cycle, at most 32 keys are prefixes of one text (the library has room for as many), and every value is the
// offset of a replacement that ends inside.
void CheckNormalizerTable(std::string_view table, std::string_view source);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_NORMALIZER_TABLE_H_
