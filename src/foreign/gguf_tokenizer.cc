// Writes the tokenizer in the metadata of a GGUF file as the files that its own library reads.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "foreign/gguf_model.h"
#include "io/json.h"
#include "text/bpe.h"
#include "text/hub.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

namespace lattice::foreign {
namespace {

using nlohmann::json;
using text::TokenizerFile;
using text::WordSplit;

// What a token is, with the numbers of the format, which are SentencePiece's.
constexpr int64_t kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

struct NamedSplit {
  std::string_view name;
  WordSplit split;
  bool whole_words;  // a word that is a token is that token, whatever the merges say
  bool adds_bos;     // where the file does not say
};
constexpr NamedSplit kSplits[] = {
    {"gpt-2", WordSplit::kGpt2, false, false},     {"smollm", WordSplit::kDigits, false, false},
    {"llama-bpe", WordSplit::kLlama3, true, true}, {"llama3", WordSplit::kLlama3, true, true},
    {"llama-v3", WordSplit::kLlama3, true, true},  {"qwen2", WordSplit::kQwen2, false, false},
};

class GgufTokenizer {
 public:
  explicit GgufTokenizer(const io::Gguf& file)
      : file_(file), tokens_(file.Require<std::vector<std::string>>("tokenizer.ggml.tokens")) {
    if (const auto* types = file.Find<std::vector<int64_t>>("tokenizer.ggml.token_type")) types_ = *types;
    Require(types_.empty() || types_.size() == tokens_.size(), "there are ", types_.size(), " types for ",
            tokens_.size(), " tokens");
    for (size_t id = 0; id < tokens_.size(); ++id) {
      Require(text::CountInvalidUtf8(tokens_[id]) == 0 && !tokens_[id].empty(), "token ", id,
              " is empty or not UTF-8");
    }
  }

  std::vector<TokenizerFile> BpeFiles() const {
    const NamedSplit split = Split();
    json vocab = json::object(), merges = json::array();
    for (size_t id = 0; id < tokens_.size(); ++id) {
      Require(!vocab.contains(tokens_[id]), "the token \"", tokens_[id], "\" occurs twice");
      vocab[tokens_[id]] = id;
    }
    for (const std::string& merge : file_.Require<std::vector<std::string>>("tokenizer.ggml.merges"))
      merges.push_back(Pair(merge));
    const json model = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", false},
                        {"byte_fallback", false},
                        {"ignore_merges", split.whole_words},
                        {"vocab", std::move(vocab)},
                        {"merges", std::move(merges)}};
    const json tokenizer = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", AddedTokens()},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", PreTokenizer(split.split)},
                            {"post_processor", PostProcessor(split.adds_bos)},
                            {"decoder", text::HubBytesAsCharacters()},
                            {"model", model}};
    return {{std::string(text::kHubTokenizerFile), io::DumpJson(tokenizer) + "\n"},
            {std::string(text::kHubTokenizerConfigFile), io::DumpJsonIndented(Config())}};
  }

  std::vector<TokenizerFile> SentencePieceFiles() const {
    const auto& scores = file_.Require<std::vector<double>>("tokenizer.ggml.scores");
    Require(scores.size() == tokens_.size() && types_.size() == tokens_.size(), "there are ", scores.size(),
            " scores and ", types_.size(), " types for ", tokens_.size(), " tokens");
    const bool* prefix = file_.Find<bool>("tokenizer.ggml.add_space_prefix");
    text::SentencePieceParts parts;
    parts.dummy_prefix = prefix == nullptr || *prefix;
    parts.unknown = Id("unknown");
    parts.bos = Id("bos");
    parts.eos = Id("eos");
    for (size_t id = 0; id < tokens_.size(); ++id) {
      const auto type = static_cast<uint64_t>(types_[id]);
      Require(types_[id] >= 1 && types_[id] <= kByte, "token ", id, " has the unknown type ", types_[id]);
      parts.pieces.push_back({tokens_[id], static_cast<float>(scores[id]), type});
      parts.byte_fallback = parts.byte_fallback || types_[id] == kByte;
    }
    return {{std::string(text::kSentencePieceFile), text::WriteSentencePiece(parts)}};
  }

  // Whether texts begin with bos.
  bool AddsBos(bool otherwise) const {
    const bool* adds = file_.Find<bool>("tokenizer.ggml.add_bos_token");
    return adds == nullptr ? otherwise : *adds;
  }

 private:
  template <typename... Args>
  void Require(bool ok, const Args&... args) const {
    Check(ok, "[gguf] ", file_.source(), ": ", args...);
  }

  NamedSplit Split() const {
    const auto* name = file_.Find<std::string>("tokenizer.ggml.pre");
    for (const NamedSplit& split : kSplits) {
      if (name != nullptr && split.name == *name) return split;
    }
    Fail("[gguf] ", file_.source(), ": the tokenizer cuts words as \"",
         name == nullptr ? "(not said)" : *name,
         "\", which is not known here; known are gpt-2, smollm, llama-bpe and qwen2");
  }

  json Pair(const std::string& merge) const {
    // A token may begin with a space only where spaces are not written as characters, which byte-level ones do.
    const size_t space = merge.find(' ', 1);
    Require(space != std::string::npos && space + 1 < merge.size(), "the merge \"", merge,
            "\" is not two tokens");
    return json::array({merge.substr(0, space), merge.substr(space + 1)});
  }

  json AddedTokens() const {
    json added = json::array();
    for (size_t id = 0; id < types_.size(); ++id) {
      const bool special = types_[id] == kControl || types_[id] == kUnknown;
      if (!special && types_[id] != kUserDefined) continue;
      added.push_back({{"id", id},
                       {"content", tokens_[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", special}});
    }
    return added;
  }

  static json PreTokenizer(WordSplit split) {
    json bytes = text::HubBytesAsCharacters();
    if (split == WordSplit::kGpt2 || split == WordSplit::kDigits) bytes["use_regex"] = true;
    if (split == WordSplit::kGpt2) return bytes;
    const json first = split == WordSplit::kDigits ? json{{"type", "Digits"}, {"individual_digits", true}}
                                                   : json{{"type", "Split"},
                                                          {"pattern", {{"Regex", text::PatternOf(split)}}},
                                                          {"behavior", "Isolated"},
                                                          {"invert", false}};
    return {{"type", "Sequence"}, {"pretokenizers", json::array({first, bytes})}};
  }

  json PostProcessor(bool otherwise) const {
    if (!AddsBos(otherwise)) return nullptr;
    const int64_t bos = Id("bos");
    Require(bos >= 0, "texts begin with a token that the file does not name");
    const std::string& token = tokens_[static_cast<size_t>(bos)];
    const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const json begin = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
    const json second = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
    return {{"type", "TemplateProcessing"},
            {"single", json::array({begin, text})},
            {"pair", json::array({begin, text, begin, second})},
            {"special_tokens", {{token, {{"id", token}, {"ids", {bos}}, {"tokens", {token}}}}}}};
  }

  json Config() const {
    json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
    for (const auto& [key, name] :
         {std::pair{"bos", "bos_token"}, {"eos", "eos_token"}, {"padding", "pad_token"}}) {
      if (const int64_t id = Id(key); id >= 0) config[name] = tokens_[static_cast<size_t>(id)];
    }
    if (const std::string chat = GgufChatTemplate(file_); !chat.empty()) config["chat_template"] = chat;
    return config;
  }

  int64_t Id(const std::string& name) const {
    const int64_t* id = file_.Find<int64_t>("tokenizer.ggml." + name + "_token_id");
    if (id == nullptr) return -1;
    Require(*id >= 0 && *id < static_cast<int64_t>(tokens_.size()), "the ", name, " token is ", *id, " of ",
            tokens_.size());
    return *id;
  }

  const io::Gguf& file_;
  const std::vector<std::string>& tokens_;
  std::vector<int64_t> types_;
};

}  // namespace

std::string GgufChatTemplate(const io::Gguf& file) {
  const auto* chat = file.Find<std::string>("tokenizer.chat_template");
  Check(chat == nullptr || text::CountInvalidUtf8(*chat) == 0, "[gguf] ", file.source(),
        ": the chat template is not UTF-8");
  return chat == nullptr ? "" : *chat;
}

std::vector<TokenizerFile> GgufTokenizerFiles(const io::Gguf& file) {
  const auto& model = file.Require<std::string>("tokenizer.ggml.model");
  Check(model == "gpt2" || model == "llama", "[gguf] ", file.source(), ": the tokenizer is of the kind \"",
        model, "\", which is not known here; known are gpt2 (byte-level BPE) and llama (SentencePiece)");
  const GgufTokenizer tokenizer(file);
  return model == "gpt2" ? tokenizer.BpeFiles() : tokenizer.SentencePieceFiles();
}

std::unique_ptr<text::Tokenizer> OpenGgufTokenizer(const std::filesystem::path& path) {
  const io::Gguf file(path);
  std::vector<TokenizerFile> files = GgufTokenizerFiles(file);
  if (files[0].name == text::kHubTokenizerFile)
    return text::ParseTokenizerJson(std::move(files[0].content), std::move(files[1].content), path.string());
  auto tokenizer = text::ParseSentencePiece(std::move(files[0].content), path.string());
  tokenizer->SetStartsTexts(GgufTokenizer(file).AddsBos(true));
  return tokenizer;
}

}  // namespace lattice::foreign
