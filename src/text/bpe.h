// Byte-level byte-pair encoding, from GPT-2's vocab.json and merges.txt or from the tokenizer.json of newer models.
#ifndef LATTICE_TEXT_BPE_H_
#define LATTICE_TEXT_BPE_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe_split.h"
#include "text/spellings.h"
#include "text/tokenizer.h"
#include "text/word_cache.h"

namespace lattice::text {

inline constexpr std::string_view kVocabFile = "vocab.json";
inline constexpr std::string_view kMergesFile = "merges.txt";

// Any bytes round-trip exactly where every byte has a token, as in GPT-2's vocabulary; a byte without one is left
// out.
class BpeTokenizer : public Tokenizer {
 public:
  // What the files say.
  struct Tables {
    std::vector<std::string> tokens;    // bytes of each id
    std::array<int32_t, 256> byte_ids;  // id of each single byte; -1: none
    struct Merge {
      int32_t rank;
      int32_t id;
    };
    std::unordered_map<uint64_t, Merge> merges;  // by PairKey(left id, right id)
    WordSplit split = WordSplit::kGpt2;
    // A word that is a token is that token, whatever the merges say.
    bool whole_words = false;
    SpecialIds special;
    std::vector<SpecialToken> specials;  // by id
    // Tokens that are taken from the text before it is cut into words, the first list before the second.
    std::array<std::vector<SpecialToken>, 2> added;
  };
  static uint64_t PairKey(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  }

  // kind: "bpe" with the two files of GPT-2, or "tokenizer.json".
  BpeTokenizer(std::string_view kind, Tables tables, std::vector<TokenizerFile> files);

  void EncodeTo(std::string_view text, std::vector<int32_t>& out) const override;
  std::optional<HubTokenizer> ForHub() const override;

 protected:
  void AppendToken(int32_t id, bool at_start, std::string& out) const override;

 private:
  void EncodeWords(std::string_view text, std::vector<int32_t>& out) const;
  void EncodeWord(std::string_view word, std::vector<int32_t>& out) const;

  Tables tables_;
  std::unordered_map<std::string_view, int32_t> words_;  // ids by their bytes, for whole_words
  std::array<Spellings, 2> added_;
  mutable WordCache cache_;
};

// Throws Error that names the file and the line or token when the files are invalid: an id used twice or out
// of range, a byte without a token, a merge whose parts or result are not tokens.
std::unique_ptr<Tokenizer> LoadBpe(const std::filesystem::path& vocab, const std::filesystem::path& merges);

// Reads the tokenizer.json of the `tokenizers` library, and the tokenizer_config.json beside it where there is one,
// which names the special tokens. The ids are those of that library. Throws Error that names what stands there
// that is not computed here: another kind of model, normalizer, way of cutting words or processor.
std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::filesystem::path& path);

// The same from the contents of the files; `config` may be empty. `source` names them in errors.
std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string tokenizer, std::string config,
                                              const std::string& source);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BPE_H_
