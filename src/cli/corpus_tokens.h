// The tokens of a text that a command is given.
#ifndef LATTICE_CLI_CORPUS_TOKENS_H_
#define LATTICE_CLI_CORPUS_TOKENS_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::cli {

// `data` is a text file, a directory of .txt files, or a directory of token shards; `most` tokens of its start, 0: all.
// Documents end with the end-of-text id, as in training.
std::vector<int32_t> CorpusTokens(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                                  int64_t most);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_CORPUS_TOKENS_H_
