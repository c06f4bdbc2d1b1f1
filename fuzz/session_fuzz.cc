// Any bytes as the saved state of a session: the state of this model, or refused with an Error. Mutations keep the
// checksum right.
#include <cmath>
#include <cstdlib>

#include "allocation_bound.h"
#include "base/error.h"
#include "input_file.h"
#include "repair.h"
#include "runtime/session.h"
#include "runtime/testing.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return lattice::fuzz::MutateAndRepair(data, size, most, seed, lattice::fuzz::RepairSession);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto model = lattice::runtime::Model::Untrained(lattice::runtime::TinyConfig("lattice_dec"), 1,
                                                               lattice::runtime::WeightFormat::kF32);
  const lattice::fuzz::InputFile input(data, size);
  const lattice::fuzz::AllocationBound bound(size);
  try {
    const auto session = lattice::runtime::Session::Load(model, input.path());
    for (const float value : session.Memory(0, 0)) {
      if (!std::isfinite(value)) std::abort();
    }
  } catch (const lattice::Error&) {
  }
  return 0;
}
