// Stands for the SentencePiece library where there is none: in WebAssembly.
#include "base/error.h"
#include "text/sentencepiece.h"

namespace lattice::text {

std::unique_ptr<Tokenizer> LoadSentencePiece(const std::filesystem::path& path) {
  Fail("[tokenizer] ", path.string(),
       " is a SentencePiece model, which this build cannot read; models with the "
       "tokenizers bytes, bpe and tokenizer.json can be used");
}

}  // namespace lattice::text
