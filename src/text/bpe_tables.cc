// Vocabularies write bytes as printable characters (text/byte_characters.h).
#include "text/bpe_tables.h"

#include "base/error.h"
#include "text/byte_characters.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

// The bytes of a token; a token with other characters (a special one) is taken literally.
std::string BytesOf(std::string_view token, const std::unordered_map<char32_t, char>& bytes) {
  std::string out;
  for (std::string_view rest = token; !rest.empty();) {
    const Utf8Char c = DecodeUtf8(rest);
    const auto found = bytes.find(c.code);
    if (c.kind != Utf8Char::Kind::kValid || found == bytes.end()) return std::string(token);
    out += found->second;
    rest.remove_prefix(c.length);
  }
  return out;
}

int32_t IdOf(const BpeIds& ids, const std::string& token, std::string_view place) {
  const auto found = ids.find(token);
  Check(found != ids.end(), "[bpe] ", place, ": \"", token, "\" is not in the vocabulary");
  return found->second;
}

}  // namespace

void FillBpeTokens(const BpeIds& ids, size_t size, BpeTokenizer::Tables& tables) {
  const std::array<char32_t, 256> characters = ByteCharacters();
  std::unordered_map<char32_t, char> bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[characters[byte]] = static_cast<char>(byte);
    std::string token;
    AppendUtf8(characters[byte], token);
    const auto found = ids.find(token);
    tables.byte_ids[byte] = found == ids.end() ? -1 : found->second;
  }
  tables.tokens.resize(size);
  for (const auto& [token, id] : ids) tables.tokens[static_cast<size_t>(id)] = BytesOf(token, bytes);
}

void AddBpeMerge(const BpeIds& ids, const std::string& left, const std::string& right, std::string_view place,
                 BpeTokenizer::Tables& tables) {
  const auto rank = static_cast<int32_t>(tables.merges.size());
  const uint64_t key = BpeTokenizer::PairKey(IdOf(ids, left, place), IdOf(ids, right, place));
  const BpeTokenizer::Tables::Merge merge = {rank, IdOf(ids, left + right, place)};
  const bool fresh = tables.merges.try_emplace(key, merge).second;
  Check(fresh, "[bpe] ", place, ": the merge \"", left, " ", right, "\" occurs twice");
}

}  // namespace lattice::text
