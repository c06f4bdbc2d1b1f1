#include "text/tokenizer.h"

#include "base/error.h"
#include "io/hash.h"
#include "text/spellings.h"

namespace lattice::text {
namespace {

std::string HashOf(std::string_view kind, std::span<const TokenizerFile> files) {
  io::Sha256 hash;
  hash.Update(kind);
  for (const TokenizerFile& file : files) {
    // The length is hashed too, so that the boundaries of the files count.
    hash.Update(StrCat("\n", file.name, " ", file.content.size(), "\n"));
    hash.Update(file.content);
  }
  return hash.Finish();
}

}  // namespace

Tokenizer::Tokenizer(std::string_view kind, int32_t vocab_size, SpecialIds special,
                     std::vector<TokenizerFile> files, std::vector<SpecialToken> special_tokens)
    : kind_(kind),
      vocab_size_(vocab_size),
      special_(special),
      special_tokens_(std::move(special_tokens)),
      files_(std::move(files)),
      hash_(HashOf(kind_, files_)) {}

void Tokenizer::EncodeMarkedTo(std::string_view text, std::vector<int32_t>& out) const {
  const Spellings spellings(special_tokens_);
  EncodeAround(spellings, text, out, [&](std::string_view part) { EncodeTo(part, out); });
}

std::vector<int32_t> Tokenizer::EncodeMarked(std::string_view text) const {
  std::vector<int32_t> ids;
  EncodeMarkedTo(text, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  EncodeTo(text, ids);
  return ids;
}

void Tokenizer::DecodeTo(int32_t id, bool at_start, std::string& out) const {
  Check(id >= 0 && id < vocab_size_, "[tokenizer] there is no token ", id, "; ids are 0 to ",
        vocab_size_ - 1);
  AppendToken(id, at_start, out);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) DecodeTo(id, text.empty(), text);
  return text;
}

}  // namespace lattice::text
