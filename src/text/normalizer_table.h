// Verifies the normalisation table of a SentencePiece model ("precompiled_charsmap"). The library applies it
// to a text before tokenising, and reads it without bounds checks.
//
// Layout, little-endian: 4 bytes with the size of the trie in bytes; the trie, a double array of 32-bit units
// whose keys are the texts to replace and whose values are offsets of replacements; then the replacements,
// each ended by a NUL.
#ifndef LATTICE_TEXT_NORMALIZER_TABLE_H_
#define LATTICE_TEXT_NORMALIZER_TABLE_H_

#include <string_view>

namespace lattice::text {

// Throws Error that starts with "[sentencepiece] `source`" unless the table is safe for every text: every
// unit that a text can reach has all its 256 possible successors inside the trie, the trie has no cycle, at
// most 32 keys are prefixes of one text (the capacity of the library's buffer), and every value is the offset
// of a replacement that ends inside the table.
void CheckNormalizerTable(std::string_view table, std::string_view source);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_NORMALIZER_TABLE_H_
