// Any bytes as a file of tokens: refused with an Error, or ids that can be read and are as large as it says.
// Mutations keep both checksums right.
#include <vector>

#include "allocation_bound.h"
#include "base/error.h"
#include "data/token_file.h"
#include "input_file.h"
#include "repair.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return lattice::fuzz::MutateAndRepair(data, size, most, seed, lattice::fuzz::RepairTokenFile);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lattice::fuzz::InputFile input(data, size);
  const lattice::fuzz::AllocationBound bound(size);
  try {
    const lattice::data::TokenFile tokens(input.path());
    std::vector<int64_t> ids(static_cast<size_t>(tokens.count()));
    tokens.Read(0, ids);
    for (const int64_t id : ids) {
      if (id < 0 || id > tokens.largest()) __builtin_trap();
    }
    tokens.CheckIds(256);
  } catch (const lattice::Error&) {
  }
  return 0;
}
