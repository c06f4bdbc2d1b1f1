// Any bytes as the saved state of a session: the state of this model, or refused with an Error.
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "input_file.h"
#include "runtime/session.h"
#include "runtime/testing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto model = lattice::runtime::Model::Untrained(lattice::runtime::TinyConfig("lattice_dec"), 1,
                                                               lattice::runtime::WeightFormat::kF32);
  const lattice::fuzz::InputFile input(data, size);
  try {
    const auto session = lattice::runtime::Session::Load(model, input.path());
    for (const float value : session.Memory(0, 0)) {
      if (!std::isfinite(value)) std::abort();
    }
  } catch (const lattice::Error&) {
  }
  return 0;
}
