// The tokenizer of an experiment whose models read pieces instead of bytes.
#ifndef LATTICE_REPRODUCE_TOKENIZER_H_
#define LATTICE_REPRODUCE_TOKENIZER_H_

#include <cstdint>
#include <filesystem>

#include "reproduce/corpus.h"

namespace lattice::reproduce {

// OUT/tokenizers/<fingerprint of the text>-<pieces>.model
std::filesystem::path TokenizerFile(const std::filesystem::path& out, const Corpus& corpus, int64_t pieces);

// Trains the tokenizer on all of the training text, unless the file is there.
void MakeTokenizer(const std::filesystem::path& out, const Corpus& corpus, int64_t pieces);

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_TOKENIZER_H_
