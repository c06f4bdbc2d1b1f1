// Reads vocab.json and merges.txt. Both write bytes as printable characters (text/byte_characters.h).
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "text/bpe.h"
#include "text/byte_characters.h"
#include "text/documents.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

using Tables = BpeTokenizer::Tables;

constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr size_t kMaxVocab = 1 << 24;

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

using Ids = std::unordered_map<std::string, int32_t>;

Ids ReadIds(const std::string& text, const std::string& source) {
  const nlohmann::json vocab = io::ParseJson(text, source, {.values = kMaxVocab + 1, .bytes = kMaxFileBytes});
  Check(vocab.is_object() && !vocab.empty(), "[bpe] ", source, " must be an object of token: id");
  Ids ids;
  std::vector<bool> used(vocab.size());
  for (const auto& [token, value] : vocab.items()) {
    const auto id = io::GetJson<int64_t>(vocab, token, source);
    // Ids must be contiguous: the vocabulary has exactly as many tokens as ids.
    Check(id >= 0 && id < static_cast<int64_t>(vocab.size()), "[bpe] ", source, ": token \"", token,
          "\" has the id ", id, "; expected 0 to ", vocab.size() - 1);
    Check(!used[static_cast<size_t>(id)], "[bpe] ", source, ": the id ", id, " is used twice");
    used[static_cast<size_t>(id)] = true;
    ids.emplace(token, static_cast<int32_t>(id));
  }
  return ids;
}

void FillTokens(const Ids& ids, const std::string& source, Tables& tables) {
  const std::array<char32_t, 256> characters = ByteCharacters();
  std::unordered_map<char32_t, char> bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[characters[byte]] = static_cast<char>(byte);
    std::string token;
    AppendUtf8(characters[byte], token);
    const auto found = ids.find(token);
    Check(found != ids.end(), "[bpe] ", source, " has no token \"", token, "\" for the byte ", byte,
          "; is this the vocabulary of a byte-level BPE?");
    tables.byte_ids[byte] = found->second;
  }
  tables.tokens.resize(ids.size());
  for (const auto& [token, id] : ids) tables.tokens[static_cast<size_t>(id)] = BytesOf(token, bytes);
  const auto eot = ids.find(std::string(kEndOfText));
  tables.eot = eot == ids.end() ? -1 : eot->second;
}

// The id of a token that line `line` of the merges uses.
int32_t IdOf(const Ids& ids, const std::string& token, const std::string& source, int line) {
  const auto found = ids.find(token);
  Check(found != ids.end(), "[bpe] ", source, ":", line, ": \"", token, "\" is not in the vocabulary");
  return found->second;
}

void ReadMerge(const Ids& ids, std::string_view text, const std::string& source, int line, Tables& tables) {
  const size_t space = text.find(' ');
  Check(space != std::string_view::npos && space > 0 && space + 1 < text.size() &&
            text.find(' ', space + 1) == std::string_view::npos,
        "[bpe] ", source, ":", line, ": expected two tokens with a space between, got \"",
        text.substr(0, 100), "\"");
  const std::string left(text.substr(0, space)), right(text.substr(space + 1));
  const auto rank = static_cast<int32_t>(tables.merges.size());
  const uint64_t key = BpeTokenizer::PairKey(IdOf(ids, left, source, line), IdOf(ids, right, source, line));
  const Tables::Merge merge = {rank, IdOf(ids, left + right, source, line)};
  const bool fresh = tables.merges.try_emplace(key, merge).second;
  Check(fresh, "[bpe] ", source, ":", line, ": the merge \"", text, "\" occurs twice");
}

void ReadMerges(const Ids& ids, std::string_view text, const std::string& source, Tables& tables) {
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view merge = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (merge.ends_with('\r')) merge.remove_suffix(1);
    if (merge.empty() || (line == 1 && merge.starts_with("#version"))) continue;
    ReadMerge(ids, merge, source, line, tables);
  }
}

}  // namespace

std::unique_ptr<Tokenizer> LoadBpe(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  std::vector<TokenizerFile> files = {{std::string(kVocabFile), io::ReadFile(vocab, kMaxFileBytes)},
                                      {std::string(kMergesFile), io::ReadFile(merges, kMaxFileBytes)}};
  Tables tables;
  const Ids ids = ReadIds(files[0].content, vocab.string());
  FillTokens(ids, vocab.string(), tables);
  ReadMerges(ids, files[1].content, merges.string(), tables);
  return std::make_unique<BpeTokenizer>(std::move(tables), std::move(files));
}

}  // namespace lattice::text
