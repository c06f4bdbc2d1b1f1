#include "reproduce/tokenizer.h"

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "text/sentencepiece.h"

namespace lattice::reproduce {

namespace fs = std::filesystem;

fs::path TokenizerFile(const fs::path& out, const Corpus& corpus, int64_t pieces) {
  return out / "tokenizers" / StrCat(corpus.fingerprint, "-", pieces, ".model");
}

void MakeTokenizer(const fs::path& out, const Corpus& corpus, int64_t pieces) {
  const fs::path file = TokenizerFile(out, corpus, pieces);
  if (fs::exists(file)) return;
  io::MakeDirectories(file.parent_path());
  std::string all;
  for (const fs::path& text : FilesOf(corpus.train)) all += io::ReadFile(text) + "\n";
  const fs::path text = file.string() + ".txt";
  io::WriteFileAtomic(text, all);
  const text::TrainedSentencePiece trained =
      text::TrainSentencePiece(text, {.vocab_size = pieces, .max_lines = 0, .threads = 1});
  fs::remove(text);
  io::WriteFileAtomic(file, trained.model);
}

}  // namespace lattice::reproduce
