// A corpus as it is distributed, made into token shards (data/token_store.h) for training.
#ifndef LATTICE_DATA_PACK_H_
#define LATTICE_DATA_PACK_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/text_source.h"
#include "text/tokenizer.h"

namespace lattice::data {

struct PackOptions {
  // Files, or directories whose files with a known ending are taken, at any depth, in order of their names.
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path out;
  SourceOptions source;
  int64_t shard_tokens = int64_t{1} << 24;  // a shard ends with the first batch that fills it
  int threads = 2;
};

struct PackProgress {
  int64_t input_bytes = 0, total_input_bytes = 0;  // of the files as they are, packed or not
  int64_t text_bytes = 0;
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t shards = 0;
  int64_t malformed = 0;        // lines of JSON that were left out
  std::string first_malformed;  // file:line: what is wrong
  bool resumed = false;         // an interrupted packing was gone on with
};

// Reads, tokenises and writes on threads of its own; memory does not grow with the corpus. Documents are
// separated by the tokenizer's end-of-text id, where it has one. The shards do not depend on the number of
// threads.
//
// After every shard pack.json says how far it is: the same call after a crash goes on behind the last shard.
// index.json is written last and makes the directory complete. `report` is called now and then, from the
// calling thread. Throws Error: no input, an unknown ending or compression, a damaged file, a directory that
// is complete already, was begun with other inputs, or is being packed into by another process.
PackProgress Pack(const PackOptions& options, const text::Tokenizer& tokenizer,
                  const std::function<void(const PackProgress&)>& report = {});

inline constexpr std::string_view kPackJournal = "pack.json";

}  // namespace lattice::data

#endif  // LATTICE_DATA_PACK_H_
