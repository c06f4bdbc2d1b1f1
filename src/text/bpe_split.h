// Pre-tokenisation of byte-level BPE (GPT-2): cuts text into words before merging; merges never cross a cut.
#ifndef LATTICE_TEXT_BPE_SPLIT_H_
#define LATTICE_TEXT_BPE_SPLIT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace lattice::text {

// Length in bytes of the first word of `text` (not empty), which is what this expression matches at its
// start:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Bytes that are not UTF-8 count as neither letter, number nor space.
size_t FirstWord(std::string_view text);

// That expression with letters, numbers and spaces spelled out, for programs with another version of Unicode.
std::string WordPattern();

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BPE_SPLIT_H_
