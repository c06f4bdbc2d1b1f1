// A directory of token shards: reading across shards, and writing shard by shard.
#include "data/token_store.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/error.h"
#include "io/checksum.h"
#include "io/directory.h"
#include "io/json.h"
#include "io/sealed_json.h"

namespace lattice::data {
namespace {

constexpr int64_t kIndexVersion = 2;
constexpr int64_t kMostShards = 1 << 20;

std::string ShardName(int64_t index) {
  char name[32];
  std::snprintf(name, sizeof(name), "shard-%05d.tokens", static_cast<int>(index));
  return name;
}

std::string Hex(uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

}  // namespace

bool IsTokenStore(const std::filesystem::path& directory) {
  return std::filesystem::is_regular_file(directory / kIndexFile);
}

TokenStore::TokenStore(const std::filesystem::path& directory, const std::string& tokenizer_hash,
                       int64_t vocab_size) {
  const std::string name = directory.string();
  Check(IsTokenStore(directory), "[tokens] ", name, " holds no complete set of token shards: there is no ",
        kIndexFile, "; was packing interrupted? then run it again");
  const std::string source = (directory / kIndexFile).string();
  const nlohmann::json index = io::ReadSealedJson(source);
  const auto version = io::GetJson<int64_t>(index, "version", source);
  Check(version == kIndexVersion, "[tokens] ", source, " has version ", version,
        "; this program reads version ", kIndexVersion, "; delete the directory and tokenise again");
  const auto count = io::GetJson<int64_t>(index, "shards", source);
  Check(count >= 0 && count <= kMostShards, "[tokens] ", source, " names ", count, " shards");
  documents_ = io::GetJson<int64_t>(index, "documents", source);
  tokenizer_hash_ = io::GetJson<std::string>(index, "tokenizer", source);

  uint64_t mark = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::filesystem::path path = directory / ShardName(i);
    const TokenFile& shard = shards_.emplace_back(path);
    Check(shard.tokenizer_hash() == (tokenizer_hash.empty() ? tokenizer_hash_ : tokenizer_hash), "[tokens] ",
          path.string(),
          " was made with another tokenizer; give the tokenizer it was made with, or tokenise again");
    shard.CheckIds(vocab_size);
    largest_ = std::max(largest_, shard.largest());
    ends_.push_back(CheckedAdd(tokens(), shard.count(), "tokens of a store"));
    text_bytes_ = CheckedAdd(text_bytes_, shard.text_bytes(), "bytes of a store");
    mark = io::Checksum(shard.header(), mark);
  }
  fingerprint_ = Hex(mark);
  Check(fingerprint_ == io::GetJson<std::string>(index, "fingerprint", source), "[tokens] the shards of ",
        name, " are not those that ", kIndexFile, " was written for; tokenise again");
}

void TokenStore::Read(int64_t begin, std::span<int64_t> out) const {
  const auto size = static_cast<int64_t>(out.size());
  Check(begin >= 0 && begin <= tokens() && size <= tokens() - begin, "[tokens] the store has ", tokens(),
        " tokens; cannot read ", size, " from ", begin);
  auto shard = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
  while (!out.empty()) {
    const int64_t first = ends_[shard] - shards_[shard].count();
    const auto take = std::min(out.size(), static_cast<size_t>(ends_[shard] - begin));
    shards_[shard].Read(begin - first, out.first(take));
    out = out.subspan(take);
    begin += static_cast<int64_t>(take);
    ++shard;
  }
}

TokenStoreWriter::TokenStoreWriter(const std::filesystem::path& directory, const std::string& tokenizer_hash,
                                   int64_t shard_tokens, int64_t shards)
    : directory_(directory),
      tokenizer_hash_(tokenizer_hash),
      shard_tokens_(static_cast<size_t>(shard_tokens)),
      shards_(shards) {
  Check(shard_tokens > 0, "[tokens] a shard holds at least 1 token, got ", shard_tokens);
  Check(!IsTokenStore(directory), "[tokens] ", directory.string(), " holds token shards already");
  io::MakeDirectories(directory);
}

void TokenStoreWriter::Append(std::span<const int32_t> tokens, int64_t text_bytes) {
  pending_bytes_ += text_bytes;
  while (!tokens.empty()) {
    const size_t take = std::min(tokens.size(), shard_tokens_ - pending_.size());
    pending_.insert(pending_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(take));
    tokens = tokens.subspan(take);
    if (pending_.size() == shard_tokens_) WriteShard();
  }
}

void TokenStoreWriter::AppendWhole(std::span<const int32_t> tokens, int64_t text_bytes) {
  pending_bytes_ += text_bytes;
  pending_.insert(pending_.end(), tokens.begin(), tokens.end());
  if (pending_.size() >= shard_tokens_) WriteShard();
}

void TokenStoreWriter::WriteShard() {
  WriteTokenFile(directory_ / ShardName(shards_), pending_, pending_bytes_, tokenizer_hash_);
  ++shards_;
  pending_.clear();
  pending_bytes_ = 0;
}

void TokenStoreWriter::Finish(int64_t documents) {
  if (!pending_.empty() || pending_bytes_ > 0) WriteShard();
  uint64_t mark = 0;
  for (int64_t i = 0; i < shards_; ++i)
    mark = io::Checksum(TokenFile(directory_ / ShardName(i)).header(), mark);
  io::WriteSealedJson(directory_ / kIndexFile, {{"version", kIndexVersion},
                                                {"tokenizer", tokenizer_hash_},
                                                {"shards", shards_},
                                                {"documents", documents},
                                                {"fingerprint", Hex(mark)}});
}

}  // namespace lattice::data
