// The tokens of a corpus as one sequence, stored as a directory of token files: shard-00000.tokens, ... and
// index.json, which is written last and makes the directory complete. It holds the totals, the fingerprint of
// the shards and its own checksum.
#ifndef LATTICE_DATA_TOKEN_STORE_H_
#define LATTICE_DATA_TOKEN_STORE_H_

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "data/token_file.h"
#include "text/tokenizer.h"

namespace lattice::data {

inline constexpr std::string_view kIndexFile = "index.json";

// Read-only; several threads may read.
class TokenStore {
 public:
  // Reads and checks every byte once. Throws Error when the directory is incomplete, or a shard is missing,
  // damaged, made by another tokenizer than `tokenizer_hash` (64 digits; empty: any), or has an id of
  // `vocab_size` or more.
  TokenStore(const std::filesystem::path& directory, const std::string& tokenizer_hash,
             int64_t vocab_size = std::numeric_limits<int64_t>::max());
  // The same for a store made by this tokenizer.
  TokenStore(const std::filesystem::path& directory, const text::Tokenizer& tokenizer)
      : TokenStore(directory, tokenizer.hash(), tokenizer.vocab_size()) {}

  int64_t tokens() const { return ends_.empty() ? 0 : ends_.back(); }
  // The largest id, or -1 without tokens.
  int64_t largest() const { return largest_; }
  int64_t text_bytes() const { return text_bytes_; }
  int64_t shards() const { return static_cast<int64_t>(shards_.size()); }
  // -1: not counted.
  int64_t documents() const { return documents_; }
  const std::string& tokenizer_hash() const { return tokenizer_hash_; }
  // 16 hexadecimal digits that change with the content: order and checksums of the shards.
  const std::string& fingerprint() const { return fingerprint_; }

  // Copies tokens [begin, begin + out.size()), across shards. Throws Error when they do not exist.
  void Read(int64_t begin, std::span<int64_t> out) const;

 private:
  std::vector<TokenFile> shards_;
  std::vector<int64_t> ends_;  // tokens up to and including each shard
  int64_t largest_ = -1;
  int64_t text_bytes_ = 0;
  int64_t documents_ = -1;
  std::string tokenizer_hash_;
  std::string fingerprint_;
};

// Writes a store shard by shard, in bounded memory. Used by one thread at a time. Without Finish() the
// directory stays incomplete, and TokenStore refuses it.
class TokenStoreWriter {
 public:
  static constexpr int64_t kShardTokens = int64_t{1} << 24;

  // Creates the directory, which must not hold a complete store. Continues after the first `shards` shards,
  // which must exist.
  TokenStoreWriter(const std::filesystem::path& directory, const std::string& tokenizer_hash,
                   int64_t shard_tokens = kShardTokens, int64_t shards = 0);

  // `text_bytes` is the size of the text that `tokens` stand for.
  void Append(std::span<const int32_t> tokens, int64_t text_bytes);
  // The same, but keeps `tokens` in one shard, which may exceed its size by them.
  void AppendWhole(std::span<const int32_t> tokens, int64_t text_bytes);
  // `documents` -1: not counted.
  void Finish(int64_t documents = -1);

  // Shards on disk so far.
  int64_t shards() const { return shards_; }

 private:
  void WriteShard();

  std::filesystem::path directory_;
  std::string tokenizer_hash_;
  size_t shard_tokens_;
  std::vector<int32_t> pending_;
  int64_t pending_bytes_ = 0;
  int64_t shards_ = 0;
};

// True when `directory` holds a complete store.
bool IsTokenStore(const std::filesystem::path& directory);

}  // namespace lattice::data

#endif  // LATTICE_DATA_TOKEN_STORE_H_
