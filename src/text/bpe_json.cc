// Reads tokenizer.json of the `tokenizers` library: a byte-level BPE, the way its text is cut into words, and its
// added tokens. What would change the ids and is not computed here is refused.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "text/bpe_tables.h"
#include "text/documents.h"
#include "text/hub.h"

namespace lattice::text {
namespace {

using nlohmann::json;

constexpr size_t kMaxJsonBytes = size_t{64} << 20;
constexpr size_t kMaxValues = size_t{1} << 23;
constexpr size_t kMaxAdded = size_t{1} << 16;

bool IsNull(const json& object, const char* key) { return !object.contains(key) || object[key].is_null(); }

class JsonReader {
 public:
  JsonReader(const json& tokenizer, const json& config, const std::string& source)
      : tokenizer_(tokenizer), config_(config), source_(source) {}

  BpeTokenizer::Tables Read() {
    Require(tokenizer_.is_object() && tokenizer_.contains("model"),
            "is not a tokenizer: it has no \"model\"");
    Require(IsNull(tokenizer_, "normalizer"), "the normalizer ", TypeOf("normalizer"),
            " is not known here; only texts that are encoded as they are");
    ReadModel();
    ReadAdded();
    // Ids without a token take memory: a few are normal.
    Require(size_ <= 2 * (ids_.size() + literal_.size()) + kMaxAdded, "ids up to ", size_ - 1, " for ",
            ids_.size() + literal_.size(), " tokens");
    FillBpeTokens(ids_, size_, tables_);
    for (const SpecialToken& token : literal_) tables_.tokens[static_cast<size_t>(token.id)] = token.text;
    ReadMerges();
    CheckBytes();
    tables_.split = ReadSplit();
    ReadSpecial();
    return std::move(tables_);
  }

 private:
  template <typename... Args>
  void Require(bool ok, const Args&... args) const {
    Check(ok, "[tokenizer] ", source_, ": ", args...);
  }

  static std::string TypeOf(const json& part) {
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) return "(without a type)";
    std::string type = StrCat("\"", part["type"].get_ref<const std::string&>(), "\"");
    for (const char* list : {"pretokenizers", "processors", "normalizers", "decoders"}) {
      if (!part.contains(list) || !part[list].is_array()) continue;
      for (const json& inner : part[list]) type += StrCat(" ", TypeOf(inner));
    }
    return type;
  }
  std::string TypeOf(const char* key) const {
    return tokenizer_.contains(key) ? TypeOf(tokenizer_[key]) : "null";
  }
  static bool IsType(const json& part, std::string_view type) {
    return part.is_object() && part.contains("type") && part["type"].is_string() &&
           part["type"].get_ref<const std::string&>() == type;
  }
  // A flag of a part; Error when it is no flag.
  bool Flag(const json& part, const char* key, bool otherwise) const {
    return IsNull(part, key) ? otherwise : io::GetJson<bool>(part, key, source_);
  }

  int32_t Id(const json& value, std::string_view token) {
    Require(value.is_number_integer() && value >= 0 && value < static_cast<int64_t>(kMaxBpeVocab),
            "the token \"", token, "\" has no id from 0 to ", kMaxBpeVocab - 1);
    const auto id = value.get<int32_t>();
    size_ = std::max(size_, static_cast<size_t>(id) + 1);
    return id;
  }

  void ReadModel() {
    const json& model = tokenizer_["model"];
    // Old files leave the type out; those of BPE have merges.
    const bool bpe = IsType(model, "BPE") || (IsNull(model, "type") && model.contains("merges"));
    Require(bpe, "the model ", TypeOf(model), " is not known here; only \"BPE\" on bytes");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      Require(IsNull(model, key) || model[key] == "", "a model with \"", key, "\" is not known here");
    Require(!Flag(model, "byte_fallback", false),
            "a model with \"byte_fallback\" is a SentencePiece model; put its tokenizer.model there");
    Require(model.contains("vocab") && model["vocab"].is_object() && model.contains("merges") &&
                model["merges"].is_array(),
            "the model needs \"vocab\" and \"merges\"");
    tables_.whole_words = Flag(model, "ignore_merges", false);
    std::unordered_map<int32_t, int> used;
    for (const auto& [token, value] : model["vocab"].items()) {
      const int32_t id = Id(value, token);
      Require(used.try_emplace(id, 1).second, "the id ", id, " is used twice");
      ids_.emplace(token, id);
    }
  }

  void ReadMerges() {
    size_t number = 0;
    for (const json& merge : tokenizer_["model"]["merges"]) {
      const std::string place = StrCat(source_, ": merge ", number++);
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        AddBpeMerge(ids_, merge[0].get<std::string>(), merge[1].get<std::string>(), place, tables_);
        continue;
      }
      Require(merge.is_string(), "merge ", number - 1, " must be two tokens");
      const auto text = merge.get<std::string>();
      const size_t space = text.find(' ');
      Require(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, "merge ",
              number - 1, " must be two tokens with a space between");
      AddBpeMerge(ids_, text.substr(0, space), text.substr(space + 1), place, tables_);
    }
  }

  // Bytes that UTF-8 has must have a token where an unknown one has an id, which is not computed here; otherwise
  // they are left out, as the library does.
  void CheckBytes() const {
    int known = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      const bool in_texts = byte < 0xC0 || (byte >= 0xC2 && byte < 0xF5);
      const bool has_token = tables_.byte_ids[byte] >= 0;
      known += has_token ? 1 : 0;
      Require(!in_texts || has_token || IsNull(tokenizer_["model"], "unk_token"),
              "there is no token for the byte ", byte, " but one for unknown text, which is not known here");
    }
    Require(known >= 128, "the vocabulary has tokens for ", known,
            " of the 256 bytes; is this a byte-level BPE?");
  }

  void ReadAdded() {
    if (IsNull(tokenizer_, "added_tokens")) return;
    const json& added = tokenizer_["added_tokens"];
    Require(added.is_array() && added.size() <= kMaxAdded, "\"added_tokens\" must be a list of at most ",
            kMaxAdded);
    for (const json& token : added) {
      const auto text = io::GetJson<std::string>(token, "content", source_);
      const int32_t id = Id(token.contains("id") ? token["id"] : json(), text);
      Require(!text.empty(), "the added token ", id, " is empty");
      for (const char* key : {"single_word", "lstrip", "rstrip"})
        Require(!Flag(token, key, false), "the added token \"", text, "\" with \"", key,
                "\" is not known here");
      literal_.push_back({id, text});
      if (Flag(token, "special", false)) {
        tables_.specials.push_back({id, text});
      } else {
        tables_.added[Flag(token, "normalized", true) ? 1 : 0].push_back({id, text});
      }
    }
    std::stable_sort(tables_.specials.begin(), tables_.specials.end(),
                     [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  }

  // ByteLevel, which writes bytes as characters and may cut words; the words are cut by a Split before it
  // otherwise.
  bool CheckByteLevel(const json& part) const {
    Require(IsType(part, "ByteLevel"), "the pre_tokenizer ", TypeOf("pre_tokenizer"), " is not known here");
    Require(!Flag(part, "add_prefix_space", true), "\"add_prefix_space\" is not known here");
    return Flag(part, "use_regex", true);
  }

  WordSplit ReadSplit() const {
    Require(!IsNull(tokenizer_, "pre_tokenizer"), "there is no pre_tokenizer; expected \"ByteLevel\"");
    const json& part = tokenizer_["pre_tokenizer"];
    if (IsType(part, "ByteLevel")) {
      Require(CheckByteLevel(part), "a pre_tokenizer \"ByteLevel\" that cuts no words is not known here");
      return WordSplit::kGpt2;
    }
    const bool pair = IsType(part, "Sequence") && part.contains("pretokenizers") &&
                      part["pretokenizers"].is_array() && part["pretokenizers"].size() == 2;
    Require(pair, "the pre_tokenizer ", TypeOf(part), " is not known here");
    const json& first = part["pretokenizers"][0];
    const bool by_regex = CheckByteLevel(part["pretokenizers"][1]);
    if (IsType(first, "Digits") && Flag(first, "individual_digits", false) && by_regex)
      return WordSplit::kDigits;
    Require(IsType(first, "Split") && !by_regex, "the pre_tokenizer ", TypeOf(part), " is not known here");
    return SplitOf(first);
  }

  WordSplit SplitOf(const json& part) const {
    const json pattern = part.value("pattern", json());
    const bool plain = part.value("behavior", json()) == "Isolated" && !Flag(part, "invert", false);
    Require(plain && pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string(),
            "the pre_tokenizer \"Split\" must isolate the matches of a regular expression");
    const auto regex = pattern["Regex"].get<std::string>();
    const std::optional<WordSplit> split = SplitOfPattern(regex);
    Require(split.has_value(), "words are cut by the expression ", regex, ", which is not known here");
    return *split;
  }

  // The id of a token that tokenizer_config.json names by `key`; -1 when it names none.
  int32_t Named(const char* key) const {
    if (!config_.is_object() || IsNull(config_, key)) return -1;
    const json& value = config_[key];
    const json text = value.is_object() && value.contains("content") ? value["content"] : value;
    Require(text.is_string(), "tokenizer_config.json: \"", key, "\" must be a token");
    return Find(text.get<std::string>());
  }

  int32_t Find(const std::string& text) const {
    for (const SpecialToken& token : literal_) {
      if (token.text == text) return token.id;
    }
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  void ReadSpecial() {
    SpecialIds& special = tables_.special;
    special.bos = Named("bos_token");
    special.eos = Named("eos_token");
    special.eot = special.eos;
    for (const std::string_view name : {kEndOfText, std::string_view("<|end_of_text|>")}) {
      for (const SpecialToken& token : tables_.specials) {
        if (token.text == name) special.eot = token.id;
      }
    }
    if (special.eos < 0) special.eos = special.eot;
    special.starts_texts = AddsBos();
    Require(!special.starts_texts || special.bos >= 0,
            "texts begin with a token that tokenizer_config.json does not name as bos_token");
  }

  // Whether the post_processor puts bos in front of every text, the only thing it may do.
  bool AddsBos() const {
    if (IsNull(tokenizer_, "post_processor")) return false;
    const json& processor = tokenizer_["post_processor"];
    const bool several = IsType(processor, "Sequence") && processor.contains("processors");
    bool adds = false;
    for (const json& part : several ? processor["processors"] : json::array({processor})) {
      if (IsType(part, "ByteLevel")) continue;
      Require(IsType(part, "TemplateProcessing") && part.contains("single") && part["single"].is_array(),
              "the post_processor ", TypeOf(processor), " is not known here");
      const json& single = part["single"];
      const bool plain = single.size() == 1 && single[0].contains("Sequence");
      const bool begins = single.size() == 2 && single[0].contains("SpecialToken") &&
                          single[0]["SpecialToken"].is_object() && single[1].contains("Sequence");
      Require(plain || begins, "a post_processor that adds more than one token in front is not known here");
      if (!begins) continue;
      Require(Find(io::GetJson<std::string>(single[0]["SpecialToken"], "id", source_)) == tables_.special.bos,
              "texts begin with a token that tokenizer_config.json does not name as bos_token");
      adds = true;
    }
    return adds;
  }

  const json& tokenizer_;
  const json& config_;
  const std::string& source_;
  BpeTokenizer::Tables tables_;
  BpeIds ids_;
  size_t size_ = 0;
  std::vector<SpecialToken> literal_;  // tokens whose text is what stands there, not bytes as characters
};

}  // namespace

std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string tokenizer, std::string config,
                                              const std::string& source) {
  const io::JsonLimits limits = {.values = kMaxValues, .bytes = kMaxJsonBytes};
  const json parsed = io::ParseJson(tokenizer, source, limits);
  const json named = config.empty() ? json::object() : io::ParseJson(config, source + " (config)", limits);
  BpeTokenizer::Tables tables = JsonReader(parsed, named, source).Read();
  std::vector<TokenizerFile> files = {{std::string(kHubTokenizerFile), std::move(tokenizer)}};
  if (!config.empty()) files.push_back({std::string(kHubTokenizerConfigFile), std::move(config)});
  return std::make_unique<BpeTokenizer>(kHubTokenizerFile, std::move(tables), std::move(files));
}

std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::filesystem::path& path) {
  const std::filesystem::path config = path.parent_path() / kHubTokenizerConfigFile;
  return ParseTokenizerJson(io::ReadFile(path, kMaxJsonBytes),
                            std::filesystem::exists(config) ? io::ReadFile(config, kMaxJsonBytes) : "",
                            path.string());
}

}  // namespace lattice::text
