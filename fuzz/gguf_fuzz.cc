// Any bytes as a GGUF file: read in bounds, or refused with an Error; then as a model and its tokenizer.
#include <vector>

#include "allocation_bound.h"
#include "base/error.h"
#include "foreign/gguf_model.h"
#include "input_file.h"
#include "io/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::InputFile input(data, size);
  const lattice::fuzz::AllocationBound bound(size);
  try {
    const lattice::io::Gguf file(input.path());
    for (const auto& [name, tensor] : file.tensors()) {
      std::vector<float> out(static_cast<size_t>(tensor.elements()));
      lattice::io::Dequantize(tensor.type, tensor.bytes, out);
    }
  } catch (const lattice::Error&) {
  }
  try {
    (void)lattice::foreign::OpenGguf(input.path());
  } catch (const lattice::Error&) {
  }
  try {
    (void)lattice::foreign::OpenGgufTokenizer(input.path());
  } catch (const lattice::Error&) {
  }
  return 0;
}
