// Finding, opening and saving tokenizers.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "io/file.h"
#include "io/json.h"
#include "text/bpe.h"
#include "text/bytes.h"
#include "text/hub.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

namespace lattice::text {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKinds[] = {"bytes", "sentencepiece", "bpe", "tokenizer.json"};
constexpr std::string_view kVocabSuffix = "vocab.json", kMergesSuffix = "merges.txt";

// A path that cannot be accessed counts as missing.
bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::unique_ptr<Tokenizer> OpenKind(std::string_view kind, const fs::path& directory,
                                    std::string_view source) {
  if (kind == "bytes") return std::make_unique<BytesTokenizer>();
  if (kind == "sentencepiece") return LoadSentencePiece(directory / kSentencePieceFile);
  if (kind == "bpe") return LoadBpe(directory / kVocabFile, directory / kMergesFile);
  if (kind == kHubTokenizerFile) return LoadTokenizerJson(directory / kHubTokenizerFile);
  Fail("[tokenizer] ", source, ": unknown kind \"", kind, "\"", DidYouMean(kind, kKinds));
}

std::unique_ptr<Tokenizer> OpenSaved(const fs::path& directory) {
  const fs::path path = directory / kTokenizerFile;
  const std::string source = path.string();
  const nlohmann::json saved = io::ReadJson(path);
  auto tokenizer = OpenKind(io::GetJson<std::string>(saved, "kind", source), directory, source);
  const auto hash = io::GetJson<std::string>(saved, "hash", source);
  Check(hash == tokenizer->hash(), "[tokenizer] the files in ", directory.string(), " have the hash ",
        tokenizer->hash(), " but ", kTokenizerFile, " records ", hash,
        "; the tokenizer was changed after it was saved");
  if (saved.contains("starts_texts"))
    tokenizer->SetStartsTexts(io::GetJson<bool>(saved, "starts_texts", source));
  return tokenizer;
}

std::unique_ptr<Tokenizer> OpenDirectory(const fs::path& directory) {
  if (Exists(directory / kTokenizerFile)) return OpenSaved(directory);
  if (Exists(directory / kSentencePieceFile)) return OpenKind("sentencepiece", directory, "");
  if (Exists(directory / kVocabFile)) return OpenKind("bpe", directory, "");
  if (Exists(directory / kHubTokenizerFile)) return OpenKind(kHubTokenizerFile, directory, "");
  Fail("[tokenizer] ", directory.string(), " has no tokenizer: expected ", kTokenizerFile, ", ",
       kSentencePieceFile, ", ", kVocabFile, " with ", kMergesFile, ", or ", kHubTokenizerFile);
}

}  // namespace

std::unique_ptr<Tokenizer> OpenTokenizer(const std::string& spec) {
  if (spec == "bytes") return std::make_unique<BytesTokenizer>();
  std::error_code ignored;
  if (fs::is_directory(spec, ignored)) return OpenDirectory(spec);
  Check(Exists(spec), "[tokenizer] there is no tokenizer \"", spec,
        "\"; expected bytes, a SentencePiece .model, a vocab.json or a directory with tokenizer files");
  if (spec.ends_with(kVocabSuffix)) {
    return LoadBpe(spec, spec.substr(0, spec.size() - kVocabSuffix.size()).append(kMergesSuffix));
  }
  if (spec.ends_with(kHubTokenizerFile)) return LoadTokenizerJson(spec);
  return LoadSentencePiece(spec);
}

void SaveTokenizer(const Tokenizer& tokenizer, const fs::path& directory) {
  for (const TokenizerFile& file : tokenizer.files())
    io::WriteFileAtomic(directory / file.name, file.content);
  nlohmann::ordered_json saved = {{"kind", tokenizer.kind()},          {"vocab_size", tokenizer.vocab_size()},
                                  {"bos_id", tokenizer.special().bos}, {"eos_id", tokenizer.special().eos},
                                  {"eot_id", tokenizer.special().eot}, {"hash", tokenizer.hash()}};
  if (tokenizer.special().starts_texts) saved["starts_texts"] = true;
  io::WriteFileAtomic(directory / kTokenizerFile, saved.dump(2) + "\n");
  SaveHubFiles(tokenizer, directory);
}

}  // namespace lattice::text
