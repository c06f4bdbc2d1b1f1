// Filling the tables of byte-level BPE from a vocabulary and a list of merges, whatever file they stand in.
#ifndef LATTICE_TEXT_BPE_TABLES_H_
#define LATTICE_TEXT_BPE_TABLES_H_

#include <string>
#include <string_view>
#include <unordered_map>

#include "text/bpe.h"

namespace lattice::text {

inline constexpr size_t kMaxBpeVocab = 1 << 24;

using BpeIds = std::unordered_map<std::string, int32_t>;

// Sets tables.tokens, with `size` places, and tables.byte_ids, -1 for a byte without a token. The ids must be
// below `size`.
void FillBpeTokens(const BpeIds& ids, size_t size, BpeTokenizer::Tables& tables);

// Appends the merge of two tokens; `place`, such as "merges.txt:3", starts the message of the Error for one that
// is not in the vocabulary, and for a merge that occurs twice.
void AddBpeMerge(const BpeIds& ids, const std::string& left, const std::string& right, std::string_view place,
                 BpeTokenizer::Tables& tables);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BPE_TABLES_H_
