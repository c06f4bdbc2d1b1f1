#include "cli/corpus_tokens.h"

#include <algorithm>

#include "data/corpus.h"
#include "data/token_store.h"

namespace lattice::cli {
namespace {

std::vector<int32_t> ReadShards(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                                int64_t most) {
  const data::TokenStore store(data, tokenizer);
  int64_t count = store.tokens();
  if (most > 0) count = std::min(count, most);
  std::vector<int64_t> wide(static_cast<size_t>(count));
  store.Read(0, wide);
  return {wide.begin(), wide.end()};
}

std::vector<int32_t> ReadText(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                              int64_t most) {
  const data::Corpus corpus(data, true);
  const int32_t eot = tokenizer.special().eot;
  std::vector<int32_t> tokens;
  for (const text::Document& document : corpus.documents()) {
    tokenizer.EncodeTo(document.text, tokens);
    if (document.ended && eot >= 0) tokens.push_back(eot);
    if (most > 0 && static_cast<int64_t>(tokens.size()) >= most) {
      tokens.resize(static_cast<size_t>(most));
      break;
    }
  }
  return tokens;
}

}  // namespace

std::vector<int32_t> CorpusTokens(const std::filesystem::path& data, const text::Tokenizer& tokenizer,
                                  int64_t most) {
  return data::IsTokenStore(data) ? ReadShards(data, tokenizer, most) : ReadText(data, tokenizer, most);
}

}  // namespace lattice::cli
