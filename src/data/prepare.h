// From what [data] says to tokens ready for training: tokenised once, kept in a cache, opened from there
// afterwards.
#ifndef LATTICE_DATA_PREPARE_H_
#define LATTICE_DATA_PREPARE_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/token_store.h"
#include "model/config.h"
#include "text/tokenizer.h"

namespace lattice::data {

struct PreparedData {
  TokenStore train;
  std::optional<TokenStore> valid;  // none when no text is held out
};

// Told about things a person should know: work that takes time, bytes that are not UTF-8.
using Notes = std::function<void(const std::string&)>;

// data.train and data.valid may name a text file, a directory of .txt files or a directory of token shards.
// Shards cannot be split: without data.valid nothing is held out.
//
// Stores are kept under `cache`, under names made of the content's hash, the split and the tokenizer's hash,
// so a changed text or tokenizer is never mistaken for another. A damaged one is made again. Several
// processes may share a cache. Throws Error when there is no text, or the text has <|endoftext|> lines and
// the tokenizer no such id.
PreparedData Prepare(const model::DataConfig& config, const text::Tokenizer& tokenizer,
                     const std::filesystem::path& cache, const Notes& notes = {});

}  // namespace lattice::data

#endif  // LATTICE_DATA_PREPARE_H_
