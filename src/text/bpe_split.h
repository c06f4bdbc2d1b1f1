// Pre-tokenisation of byte-level BPE: cuts text into words before merging; merges never cross a cut.
#ifndef LATTICE_TEXT_BPE_SPLIT_H_
#define LATTICE_TEXT_BPE_SPLIT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lattice::text {

// The ways that published models cut, each equal to a regular expression whose matches, one after the other, are
// the words. Bytes that are not UTF-8 count as neither letter, number nor space.
enum class WordSplit {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Every \p{N} is a word; what stands between them is cut as above, each piece as a text of its own (SmolLM).
  kDigits,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
  // \s+(?!\S)|\s+
  kLlama3,
  // The same with \p{N} in place of \p{N}{1,3}.
  kQwen2,
};

// Length in bytes of the first word of `text` (not empty).
size_t FirstWord(std::string_view text, WordSplit split = WordSplit::kGpt2);

// The expression of kGpt2 with letters, numbers and spaces spelled out, for programs with another version of
// Unicode.
std::string WordPattern();

// The split whose expression this is, as published; none when it is another.
std::optional<WordSplit> SplitOfPattern(std::string_view pattern);
// That expression; empty for kDigits, which has none.
std::string_view PatternOf(WordSplit split);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BPE_SPLIT_H_
