// Any bytes as a safetensors file: read in bounds, or refused with an Error.
#include "base/error.h"
#include "input_file.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::InputFile input(data, size);
  try {
    const lattice::io::Safetensors file(input.path());
    volatile uint8_t seen = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      for (const std::byte byte : tensor.bytes) seen = seen ^ static_cast<uint8_t>(byte);
    }
  } catch (const lattice::Error&) {
  }
  return 0;
}
