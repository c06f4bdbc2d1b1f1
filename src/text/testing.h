// A tokenizer for tests.
#ifndef LATTICE_TEXT_TESTING_H_
#define LATTICE_TEXT_TESTING_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/bytes.h"

namespace lattice::text {

// Bytes, and the special ids that a test wants.
class SpecialBytes : public Tokenizer {
 public:
  SpecialBytes(int32_t vocab_size, const SpecialIds& special, std::vector<SpecialToken> tokens = {})
      : Tokenizer("bytes", vocab_size, special, {}, std::move(tokens)) {}
  void EncodeTo(std::string_view text, std::vector<int32_t>& out) const override {
    bytes_.EncodeTo(text, out);
  }

 protected:
  void AppendToken(int32_t id, bool at_start, std::string& out) const override {
    if (id < 256) bytes_.DecodeTo(id, at_start, out);
  }

 private:
  const BytesTokenizer bytes_;
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_TESTING_H_
