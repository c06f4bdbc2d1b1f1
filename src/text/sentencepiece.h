// SentencePiece models (unigram or BPE) by their own library, and training one.
#ifndef LATTICE_TEXT_SENTENCEPIECE_H_
#define LATTICE_TEXT_SENTENCEPIECE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace lattice::text {

inline constexpr std::string_view kSentencePieceFile = "tokenizer.model";

// Throws Error when the file is no SentencePiece model. The end of text is the piece <|endoftext|> where the
// model has it, else its </s>.
//
// The tokens are the library's own; for BPE models without a normalisation table (the common kind today)
// words are tokenised one by one and remembered, which is several times faster and gives the same tokens.
std::unique_ptr<Tokenizer> LoadSentencePiece(const std::filesystem::path& path);

// The same from the content of the file; `source` is the name errors give it.
std::unique_ptr<Tokenizer> ParseSentencePiece(std::string content, const std::string& source);

struct SentencePieceTraining {
  int64_t vocab_size = 8192;
  // Lines are drawn at random when there are more; 0: all.
  int64_t max_lines = 0;
  int threads = 2;
};

struct TrainedSentencePiece {
  std::string model;  // content of a .model file
  int64_t lines = 0;
  int64_t invalid_lines = 0;  // left out: not UTF-8, or with a NUL byte
};

// BPE with byte fallback on the lines of a text file: every text round-trips. Lines of <|endoftext|> are left
// out; the piece exists as the end of text. Throws Error when there is no usable text or too little for the
// vocabulary.
TrainedSentencePiece TrainSentencePiece(const std::filesystem::path& text,
                                        const SentencePieceTraining& options);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_SENTENCEPIECE_H_
