#include "data/token_bytes.h"

#include <string>

namespace lattice::data {
namespace {

std::vector<int64_t> Lengths(const text::Tokenizer& tokenizer, bool at_start) {
  std::vector<int64_t> lengths(static_cast<size_t>(tokenizer.vocab_size()));
  std::string piece;
  for (size_t id = 0; id < lengths.size(); ++id) {
    piece.clear();
    tokenizer.DecodeTo(static_cast<int32_t>(id), at_start, piece);
    lengths[id] = static_cast<int64_t>(piece.size());
  }
  return lengths;
}

}  // namespace

TokenBytes::TokenBytes(const text::Tokenizer& tokenizer)
    : end_of_text_(tokenizer.special().eot),
      first_(Lengths(tokenizer, true)),
      inside_(Lengths(tokenizer, false)) {}

}  // namespace lattice::data
