// Prepares the text of the [data] configuration for training: tokenises it once into a cache, and opens it
// from there afterwards.
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

// Called with messages for the user: work that takes time, bytes that are not UTF-8.
using Notes = std::function<void(const std::string&)>;

// data.train and data.valid may name a text file, a directory of .txt files or a directory of token shards.
// Shards cannot be split: without data.valid nothing is held out.
//
// Stores are cached in `cache` under names made of the content's hash, the split and the tokenizer's hash, so
// a changed text or tokenizer never gets a stale store. A damaged store is rebuilt. Several processes may
// share a cache. Throws Error when there is no text, or the text has <|endoftext|> lines and the tokenizer
// has no such id.
PreparedData Prepare(const model::DataConfig& config, const text::Tokenizer& tokenizer,
                     const std::filesystem::path& cache, const Notes& notes = {});

}  // namespace lattice::data

#endif  // LATTICE_DATA_PREPARE_H_
