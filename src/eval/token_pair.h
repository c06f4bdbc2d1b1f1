// A context and its continuation as tokens.
#ifndef LATTICE_EVAL_TOKEN_PAIR_H_
#define LATTICE_EVAL_TOKEN_PAIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace lattice::eval {

struct TokenPair {
  std::vector<int32_t> context;
  std::vector<int32_t> continuation;
};

// Both are encoded as one text and split where the context alone would end, so that a token never reaches
// over the border; white space at the context's end goes to the continuation first. With `add_bos` the
// context starts with the beginning-of-text id (Error when the tokenizer has none). An empty context becomes
// the beginning-of-text id, or the end-of-text id where there is none. Throws Error when nothing is left to
// predict.
//
// Remembers the last context, so that the choices of an item encode it once. One thread at a time; the
// tokenizer must outlive the object.
class PairEncoder {
 public:
  PairEncoder(const text::Tokenizer& tokenizer, bool add_bos) : tokenizer_(tokenizer), add_bos_(add_bos) {}

  TokenPair Encode(const std::string& context, const std::string& continuation);

 private:
  const text::Tokenizer& tokenizer_;
  bool add_bos_;
  std::string head_;
  std::vector<int32_t> head_ids_;
};

// Drops tokens from the context's start so that the model reads at most `max_length` of them (the
// continuation's last is only predicted). Returns whether something was dropped. Throws Error when the
// continuation alone is longer. 0: no limit.
bool Truncate(TokenPair& pair, int64_t max_length);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_TOKEN_PAIR_H_
