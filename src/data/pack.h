// Packs a corpus, as it is distributed, into token shards (data/token_store.h) for training.
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
  // Files, or directories, of which all files with a known extension are read, at any depth, in order of
  // their names.
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path out;
  SourceOptions source;
  int64_t shard_tokens = int64_t{1} << 24;  // a shard ends after the batch that reaches this size
  int threads = 2;
};

struct PackProgress {
  int64_t input_bytes = 0, total_input_bytes = 0;  // of the files, compressed or not
  int64_t text_bytes = 0;
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t shards = 0;
  int64_t malformed = 0;        // malformed JSON lines, which were left out
  std::string first_malformed;  // the first of them, as "file:line: what is wrong"
  bool resumed = false;         // an interrupted call was resumed
};

// Reads, tokenises and writes in parallel; memory use does not grow with the corpus. Documents are separated
// by the tokenizer's end-of-text id, if it has one. The shards do not depend on the number of threads.
//
// After every shard, pack.json records the progress: the same call after a crash resumes after the last
// shard. index.json is written last and makes the directory complete. `report` is called now and then on the
// calling thread. Throws Error when there is no input, for an unknown extension or compression, a damaged
// file, and for a directory that is complete already, was started with other inputs, or is in use by another
// process.
PackProgress Pack(const PackOptions& options, const text::Tokenizer& tokenizer,
                  const std::function<void(const PackProgress&)>& report = {});

inline constexpr std::string_view kPackJournal = "pack.json";

}  // namespace lattice::data

#endif  // LATTICE_DATA_PACK_H_
