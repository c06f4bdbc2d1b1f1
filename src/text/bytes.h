// The byte tokenizer: every byte is a token; id 256 is the end of text.
#ifndef LATTICE_TEXT_BYTES_H_
#define LATTICE_TEXT_BYTES_H_

#include "text/tokenizer.h"

namespace lattice::text {

class BytesTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kEot = 256, kVocabulary = kEot + 1;

  BytesTokenizer() : Tokenizer("bytes", kVocabulary, {.bos = -1, .eos = kEot, .eot = kEot}, {}) {}

  void EncodeTo(std::string_view text, std::vector<int32_t>& out) const override {
    const size_t before = out.size();
    out.resize(before + text.size());
    for (size_t i = 0; i < text.size(); ++i) out[before + i] = static_cast<uint8_t>(text[i]);
  }

  std::optional<HubTokenizer> ForHub() const override;

 protected:
  void AppendToken(int32_t id, bool, std::string& out) const override {
    if (id < kEot) out += static_cast<char>(id);
  }
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_BYTES_H_
