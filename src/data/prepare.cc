// Tokenises the training text into a cache, or opens it from there.
#include "data/prepare.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "data/corpus.h"
#include "io/directory.h"
#include "io/hash.h"
#include "io/write_calls.h"
#include "text/utf8.h"

namespace lattice::data {
namespace {

using Documents = std::vector<text::Document>;

constexpr std::string_view kCacheVersion = "2";
// The byte tokenizer encodes documents in pieces of this size, because a text of bytes can be cut anywhere;
// other tokenizers get whole documents.
constexpr size_t kBytePiece = size_t{1} << 22;

void AppendDocument(const text::Tokenizer& tokenizer, std::string_view text, TokenStoreWriter& writer) {
  const size_t piece = tokenizer.kind() == "bytes" ? kBytePiece : text.size();
  std::vector<int32_t> ids;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, piece);
    ids.clear();
    tokenizer.EncodeTo(part, ids);
    writer.Append(ids, static_cast<int64_t>(part.size()));
    text.remove_prefix(part.size());
  }
}

void WriteStore(const std::filesystem::path& directory, const Documents& documents,
                const text::Tokenizer& tokenizer) {
  TokenStoreWriter writer(directory, tokenizer.hash());
  const int32_t eot = tokenizer.special().eot;
  for (const text::Document& document : documents) {
    AppendDocument(tokenizer, document.text, writer);
    if (document.ended && eot >= 0) writer.Append({&eot, 1}, 0);
  }
  writer.Finish();
}

// The cached store, if it exists and is intact.
std::optional<TokenStore> FromCache(const std::filesystem::path& directory, const text::Tokenizer& tokenizer,
                                    const Notes& notes) {
  if (!IsTokenStore(directory)) return std::nullopt;
  try {
    return TokenStore(directory, tokenizer);
  } catch (const Error& error) {
    if (notes) notes(StrCat("the token cache is made again: ", error.what()));
    io::RemoveTree(directory);
    return std::nullopt;
  }
}

TokenStore CachedStore(const std::filesystem::path& directory, const Documents& documents,
                       const text::Tokenizer& tokenizer, const Notes& notes) {
  if (std::optional<TokenStore> store = FromCache(directory, tokenizer, notes)) return std::move(*store);
  std::filesystem::path temporary = directory;
  temporary += StrCat(".tmp-", ::getpid());
  io::RemoveTree(temporary);
  WriteStore(temporary, documents, tokenizer);
  // The rename fails if another process was faster; its store is identical.
  if (io::CurrentWriteCalls().Rename(temporary.c_str(), directory.c_str()) != 0) io::RemoveTree(temporary);
  return TokenStore(directory, tokenizer);
}

void CheckMarkers(const Corpus& corpus, const text::Tokenizer& tokenizer) {
  Check(!corpus.has_markers() || tokenizer.special().eot >= 0, "[data] the text has ", text::kEndOfText,
        " lines but the ", tokenizer.kind(),
        " tokenizer has no end-of-text id; use another tokenizer or set data.split_documents=false");
}

void ReportInvalid(const Documents& documents, const text::Tokenizer& tokenizer, const Notes& notes) {
  if (!notes || tokenizer.kind() != "sentencepiece") return;
  size_t invalid = 0;
  for (const text::Document& document : documents) invalid += text::CountInvalidUtf8(document.text);
  if (invalid > 0) notes(StrCat(invalid, " bytes are not UTF-8; SentencePiece reads U+FFFD in their place"));
}

// The name of the cached store of `corpus`.
std::string CacheName(const Corpus& corpus, const text::Tokenizer& tokenizer, std::string_view part,
                      double fraction) {
  const std::string key =
      StrCat(kCacheVersion, " ", corpus.hash(), " ", corpus.bytes(), " ", fraction, " ", tokenizer.hash());
  return StrCat("tokens-", io::Sha256Hex(key).substr(0, 16), "-", part);
}

struct Source {
  std::filesystem::path cache;
  const text::Tokenizer& tokenizer;
  bool split_documents;
  const Notes& notes;

  TokenStore Whole(const std::filesystem::path& path) const {
    if (IsTokenStore(path)) return TokenStore(path, tokenizer);
    const Corpus corpus(path, split_documents);
    CheckMarkers(corpus, tokenizer);
    ReportInvalid(corpus.documents(), tokenizer, notes);
    return CachedStore(cache / CacheName(corpus, tokenizer, "all", 0), corpus.documents(), tokenizer, notes);
  }

  PreparedData Halves(const std::filesystem::path& path, double fraction) const {
    const Corpus corpus(path, split_documents);
    CheckMarkers(corpus, tokenizer);
    ReportInvalid(corpus.documents(), tokenizer, notes);
    const Split split = HoldOut(corpus.documents(), fraction);
    TokenStore train =
        CachedStore(cache / CacheName(corpus, tokenizer, "train", fraction), split.train, tokenizer, notes);
    if (split.valid.empty()) return {std::move(train), std::nullopt};
    return {std::move(train), CachedStore(cache / CacheName(corpus, tokenizer, "valid", fraction),
                                          split.valid, tokenizer, notes)};
  }
};

}  // namespace

PreparedData Prepare(const model::DataConfig& config, const text::Tokenizer& tokenizer,
                     const std::filesystem::path& cache, const Notes& notes) {
  const Source source = {cache, tokenizer, config.split_documents, notes};
  if (!config.valid.empty()) return {source.Whole(config.train), source.Whole(config.valid)};
  if (IsTokenStore(config.train) || config.valid_fraction == 0)
    return {source.Whole(config.train), std::nullopt};
  return source.Halves(config.train, config.valid_fraction);
}

}  // namespace lattice::data
