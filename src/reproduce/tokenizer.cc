#include "reproduce/tokenizer.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "text/sentencepiece.h"

namespace lattice::reproduce {

namespace fs = std::filesystem;

namespace {

std::string Train(const fs::path& text, int64_t pieces) {
  return text::TrainSentencePiece(text, {.vocab_size = pieces, .max_lines = 0, .threads = 1}).model;
}

}  // namespace

fs::path TokenizerFile(const fs::path& out, const Corpus& corpus, int64_t pieces) {
  return out / "tokenizers" / StrCat(corpus.fingerprint, "-", pieces, ".model");
}

void MakeTokenizer(const fs::path& out, const Corpus& corpus, int64_t pieces) {
  const fs::path file = TokenizerFile(out, corpus, pieces);
  if (fs::exists(file)) return;
  io::MakeDirectories(file.parent_path());
  const std::vector<fs::path> files = FilesOf(corpus.train);
  if (files.size() == 1) {
    io::WriteFileAtomic(file, Train(files[0], pieces));
    return;
  }
  std::string all;
  for (const fs::path& text : files) all += io::ReadFile(text) + "\n";
  const fs::path together = StrCat(file.string(), ".", ::getpid(), ".txt");
  io::WriteFileAtomic(together, all);
  io::WriteFileAtomic(file, Train(together, pieces));
  fs::remove(together);
}

}  // namespace lattice::reproduce
