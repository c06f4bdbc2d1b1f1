// Any bytes as a safetensors file: read in bounds, or refused with an Error. Mutations keep the header's length right.
#include "allocation_bound.h"
#include "base/error.h"
#include "input_file.h"
#include "io/safetensors.h"
#include "repair.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return lattice::fuzz::MutateAndRepair(data, size, most, seed, lattice::fuzz::RepairSafetensors);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::InputFile input(data, size);
  const lattice::fuzz::AllocationBound bound(size);
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
