// Any bytes as config.json of a checkpoint and as the TOML of a run: refused with an Error, or a configuration that
// is written and read back as the same one.
#include <string_view>

#include "allocation_bound.h"
#include "base/error.h"
#include "model/checkpoint.h"

namespace model = lattice::model;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const lattice::fuzz::AllocationBound bound(size);
  try {
    const model::ModelConfig config = model::ModelFromJson(text, "fuzz");
    if (!(model::ModelFromJson(model::ModelToJson(config), "again") == config)) __builtin_trap();
  } catch (const lattice::Error&) {
  }
  try {
    const model::Config config = model::ParseConfig(text, "fuzz");
    model::Validate(config);
    if (!(model::ConfigFromJson(model::ConfigToJson(config), "again") == config)) __builtin_trap();
  } catch (const lattice::Error&) {
  }
  return 0;
}
