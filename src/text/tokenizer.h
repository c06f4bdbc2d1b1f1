// The interface of all tokenizers: text to token ids and back.
#ifndef LATTICE_TEXT_TOKENIZER_H_
#define LATTICE_TEXT_TOKENIZER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::text {

// -1: the tokenizer has no such id.
struct SpecialIds {
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t eot = -1;           // end of text: between documents
  bool starts_texts = false;  // every text begins with bos, as the model was trained

  // End: the id that ends a text. Begin: the id that precedes the first token of a text, where one is needed:
  // bos, or else the id that ended the text before it.
  int32_t End() const { return eos >= 0 ? eos : eot; }
  int32_t Begin() const { return bos >= 0 ? bos : End(); }
  // Whether a text that is being made ends where this id is chosen.
  bool Ends(int32_t id) const { return id >= 0 && (id == eos || id == eot); }
};

// A special id with the text that stands for it in chat templates.
struct SpecialToken {
  int32_t id = -1;
  std::string text;
};

// A file that belongs to a tokenizer, under the name it has in a checkpoint.
struct TokenizerFile {
  std::string name;
  std::string content;
};

// A tokenizer in the words of the `tokenizers` library (text/hub.h).
struct HubTokenizer {
  std::string json;      // content of tokenizer.json
  std::string bos, eot;  // how it spells the special ids; empty where there is none
};

// Immutable; every method may be called from several threads at once.
//
// Encoding never produces special ids, whatever the text contains. Special ids decode to nothing.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // "bytes", "sentencepiece", "bpe" or "tokenizer.json".
  std::string_view kind() const { return kind_; }
  int32_t vocab_size() const { return vocab_size_; }
  const SpecialIds& special() const { return special_; }
  // Whether every text begins with bos belongs to the model rather than to the tokenizer's files. For who opens one,
  // before anybody else uses it.
  void SetStartsTexts(bool starts) { special_.starts_texts = starts && special_.bos >= 0; }
  std::span<const TokenizerFile> files() const { return files_; }
  // 64 hexadecimal digits over kind and files: equal hashes give equal tokens. Stored in shards and
  // checkpoints.
  const std::string& hash() const { return hash_; }

  // Appends the ids of `text`, which may be any bytes. Invalid UTF-8 is preserved by bytes and bpe;
  // sentencepiece reads it as U+FFFD (text/utf8.h counts such bytes).
  virtual void EncodeTo(std::string_view text, std::vector<int32_t>& out) const = 0;
  std::vector<int32_t> Encode(std::string_view text) const;

  // The special ids that have a spelling, by id.
  std::span<const SpecialToken> special_tokens() const { return special_tokens_; }
  // Appends the ids of `text`, in which the spelling of a special token is that token: for what a chat template
  // has made, never for what a stranger wrote. At one place the longest spelling counts.
  void EncodeMarkedTo(std::string_view text, std::vector<int32_t>& out) const;
  std::vector<int32_t> EncodeMarked(std::string_view text) const;

  // Appends the bytes of one token, which may start or end inside a character. `at_start`: this is the
  // beginning of the text (sentencepiece removes the space that it has added there). Throws Error for an
  // unknown id.
  void DecodeTo(int32_t id, bool at_start, std::string& out) const;
  std::string Decode(std::span<const int32_t> ids) const;

  // Data from which the `tokenizers` library gives the same ids for every text; none when it cannot.
  virtual std::optional<HubTokenizer> ForHub() const { return std::nullopt; }

 protected:
  Tokenizer(std::string_view kind, int32_t vocab_size, SpecialIds special, std::vector<TokenizerFile> files,
            std::vector<SpecialToken> special_tokens = {});

  // DecodeTo() after the check of the id.
  virtual void AppendToken(int32_t id, bool at_start, std::string& out) const = 0;

 private:
  std::string_view kind_;
  int32_t vocab_size_;
  SpecialIds special_;
  std::vector<SpecialToken> special_tokens_;
  std::vector<TokenizerFile> files_;
  std::string hash_;
};

// Opens a tokenizer by its specification:
//   bytes                256 bytes and one id for the end of text
//   FILE.model           SentencePiece
//   [NAME.]vocab.json    byte-level BPE, with [NAME.]merges.txt beside it
//   FILE/tokenizer.json  byte-level BPE as the `tokenizers` library of Hugging Face stores it
//   DIRECTORY            with lattice_tokenizer.json (a checkpoint), or tokenizer.model, or vocab.json and
//                        merges.txt, or tokenizer.json
// Throws Error that says what was tried. In a checkpoint the files must have the recorded hash.
std::unique_ptr<Tokenizer> OpenTokenizer(const std::string& spec);

// Writes the tokenizer's files, lattice_tokenizer.json and the files of text/hub.h into a directory that exists.
void SaveTokenizer(const Tokenizer& tokenizer, const std::filesystem::path& directory);

inline constexpr std::string_view kTokenizerFile = "lattice_tokenizer.json";

}  // namespace lattice::text

#endif  // LATTICE_TEXT_TOKENIZER_H_
