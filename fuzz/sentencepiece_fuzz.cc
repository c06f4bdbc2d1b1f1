// Any bytes as a SentencePiece model: refused with an Error, or a tokenizer that encodes and decodes. The library
// trusts its file, so this is about what we check before it sees one.
#include <string>

#include "allocation_bound.h"
#include "base/error.h"
#include "text/sentencepiece.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::AllocationBound bound(size);
  const std::string content(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = lattice::text::ParseSentencePiece(content, "fuzz");
    (void)tokenizer->Decode(
        tokenizer->EncodeMarked("Grüße \xE2\x81\x87 ｆｕｌｌ <s> 123\n" + content.substr(0, 64)));
  } catch (const lattice::Error&) {
  }
  return 0;
}
