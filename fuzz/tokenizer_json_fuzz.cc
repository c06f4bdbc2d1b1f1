// Any bytes as tokenizer.json: refused with an Error, or a tokenizer that encodes and decodes.
#include <string>

#include "allocation_bound.h"
#include "base/error.h"
#include "text/bpe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::AllocationBound bound(size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = lattice::text::ParseTokenizerJson(text, "", "fuzz");
    (void)tokenizer->Decode(
        tokenizer->EncodeMarked("Don't 123 panic <|endoftext|>\n\n " + text.substr(0, 64)));
  } catch (const lattice::Error&) {
  }
  return 0;
}
