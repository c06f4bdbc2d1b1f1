// SentencePiece tokenizers (unigram or BPE), through the original library, and their training.
#ifndef LATTICE_TEXT_SENTENCEPIECE_H_
#define LATTICE_TEXT_SENTENCEPIECE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::text {

inline constexpr std::string_view kSentencePieceFile = "tokenizer.model";
// U+2581, which stands for a space in pieces.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// Throws Error when the file is not a SentencePiece model. The end-of-text id is that of the piece
// <|endoftext|> if the model has it, else of </s>.
//
// The tokens are those of the library. For BPE models without a normalisation table (the common kind), words
// are tokenised one by one and cached, which is several times faster and gives the same tokens.
std::unique_ptr<Tokenizer> LoadSentencePiece(const std::filesystem::path& path);

// The same from the content of the file; `source` names it in errors.
std::unique_ptr<Tokenizer> ParseSentencePiece(std::string content, const std::string& source);

// A BPE model as data.
struct SentencePieceParts {
  struct Piece {
    std::string text;
    float score = 0;
    uint64_t type = 1;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  };
  std::vector<Piece> pieces;
  int64_t unknown = 0, bos = -1, eos = -1;  // -1: none
  bool byte_fallback = false;
  bool dummy_prefix = true;  // a space is added in front of the text
};

// The content of the .model file; nothing is checked, ParseSentencePiece does that.
std::string WriteSentencePiece(const SentencePieceParts& parts);

struct SentencePieceTraining {
  int64_t vocab_size = 8192;
  // If there are more lines, a random sample of this size is used; 0: all.
  int64_t max_lines = 0;
  int threads = 2;
};

struct TrainedSentencePiece {
  std::string model;  // content of a .model file
  int64_t lines = 0;
  int64_t invalid_lines = 0;  // left out: not UTF-8, or with a NUL byte
};

// Trains BPE with byte fallback on the lines of a text file, so that every text round-trips. <|endoftext|> is
// a special piece; lines with it are left out. Throws Error when there is no usable text or too little for
// the vocabulary.
TrainedSentencePiece TrainSentencePiece(const std::filesystem::path& text,
                                        const SentencePieceTraining& options);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_SENTENCEPIECE_H_
