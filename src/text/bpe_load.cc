// Reads vocab.json and merges.txt.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "text/bpe_tables.h"
#include "text/documents.h"

namespace lattice::text {
namespace {

using Tables = BpeTokenizer::Tables;

constexpr size_t kMaxFileBytes = size_t{256} << 20;

BpeIds ReadIds(const std::string& text, const std::string& source) {
  const nlohmann::json vocab =
      io::ParseJson(text, source, {.values = kMaxBpeVocab + 1, .bytes = kMaxFileBytes});
  Check(vocab.is_object() && !vocab.empty(), "[bpe] ", source, " must be an object of token: id");
  BpeIds ids;
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

void ReadMerge(const BpeIds& ids, std::string_view text, const std::string& place, Tables& tables) {
  const size_t space = text.find(' ');
  Check(space != std::string_view::npos && space > 0 && space + 1 < text.size() &&
            text.find(' ', space + 1) == std::string_view::npos,
        "[bpe] ", place, ": expected two tokens with a space between, got \"", text.substr(0, 100), "\"");
  AddBpeMerge(ids, std::string(text.substr(0, space)), std::string(text.substr(space + 1)), place, tables);
}

void ReadMerges(const BpeIds& ids, std::string_view text, const std::string& source, Tables& tables) {
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view merge = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (merge.ends_with('\r')) merge.remove_suffix(1);
    if (merge.empty() || (line == 1 && merge.starts_with("#version"))) continue;
    ReadMerge(ids, merge, StrCat(source, ":", line), tables);
  }
}

}  // namespace

std::unique_ptr<Tokenizer> LoadBpe(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  std::vector<TokenizerFile> files = {{std::string(kVocabFile), io::ReadFile(vocab, kMaxFileBytes)},
                                      {std::string(kMergesFile), io::ReadFile(merges, kMaxFileBytes)}};
  Tables tables;
  const BpeIds ids = ReadIds(files[0].content, vocab.string());
  FillBpeTokens(ids, ids.size(), tables);
  for (size_t byte = 0; byte < tables.byte_ids.size(); ++byte) {
    Check(tables.byte_ids[byte] >= 0, "[bpe] ", vocab.string(), " has no token for the byte ", byte,
          "; is this the vocabulary of a byte-level BPE?");
  }
  ReadMerges(ids, files[1].content, merges.string(), tables);
  if (const auto eot = ids.find(std::string(kEndOfText)); eot != ids.end()) {
    tables.special = {-1, eot->second, eot->second};
    tables.specials.push_back({eot->second, eot->first});
  }
  return std::make_unique<BpeTokenizer>("bpe", std::move(tables), std::move(files));
}

}  // namespace lattice::text
