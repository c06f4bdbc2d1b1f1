// Tokenises a context and its continuation.
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

// White space at the end of the context is first moved to the continuation. Both are then encoded as one text
// and split after as many tokens as the context alone has. With `add_bos` the context starts with the
// beginning-of-text id (Error when the tokenizer has none). An empty context becomes the beginning-of-text
// id, or the end-of-text id if there is none. Throws Error when nothing is left to predict.
//
// Caches the last context, so that the choices of an item encode it once. Used by one thread at a time; the
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

// Drops tokens from the start of the context so that the model reads at most `max_length` (the last token of
// the continuation is only predicted); 0: no limit. Returns whether tokens were dropped. Throws Error when
// the continuation alone is longer.
bool Truncate(TokenPair& pair, int64_t max_length);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_TOKEN_PAIR_H_
