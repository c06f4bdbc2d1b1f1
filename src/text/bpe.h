// Byte-level byte-pair encoding as in GPT-2, from vocab.json and merges.txt. Any bytes round-trip exactly.
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

#include "text/tokenizer.h"
#include "text/word_cache.h"

namespace lattice::text {

inline constexpr std::string_view kVocabFile = "vocab.json";
inline constexpr std::string_view kMergesFile = "merges.txt";

class BpeTokenizer : public Tokenizer {
 public:
  // The contents of the two files.
  struct Tables {
    std::vector<std::string> tokens;    // bytes of each id
    std::array<int32_t, 256> byte_ids;  // id of each single byte
    int32_t eot = -1;                   // id of <|endoftext|>
    struct Merge {
      int32_t rank;
      int32_t id;
    };
    std::unordered_map<uint64_t, Merge> merges;  // by PairKey(left id, right id)
  };
  static uint64_t PairKey(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  }

  BpeTokenizer(Tables tables, std::vector<TokenizerFile> files);

  void EncodeTo(std::string_view text, std::vector<int32_t>& out) const override;
  std::optional<HubTokenizer> ForHub() const override;

 protected:
  void AppendToken(int32_t id, bool at_start, std::string& out) const override;

 private:
  void EncodeWord(std::string_view word, std::vector<int32_t>& out) const;

  Tables tables_;
  mutable WordCache cache_;
};

// Throws Error that names the file and the line or token when the files are invalid: an id used twice or out
// of range, a byte without a token, a merge whose parts or result are not tokens.
std::unique_ptr<Tokenizer> LoadBpe(const std::filesystem::path& vocab, const std::filesystem::path& merges);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BPE_H_
