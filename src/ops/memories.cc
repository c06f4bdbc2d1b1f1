// The memories there are, as Python reads them, and the way to load more.
#include <torch/library.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "kernels/plugin.h"
#include "kernels/registry.h"
#include "model/tensors.h"

namespace lattice {
namespace {

using nlohmann::json;

json Described(const kernels::Memory& memory) {
  json gates = json::array(), beside = json::array();
  for (const kernels::GateInfo& gate : memory.gates) {
    gates.push_back({{"name", gate.name},
                     {"role", kernels::Name(gate.role)},
                     {"form", kernels::Name(gate.form)},
                     {"layers", model::GateLayers(gate)},
                     {"idle", kernels::IdleValue(gate)},
                     {"required", gate.required},
                     {"per_slot", gate.per_slot}});
  }
  for (const kernels::StatePart& part : memory.extra_state)
    beside.push_back({{"name", part.name}, {"per_slot", part.per_slot}});
  json out = {{"name", memory.name},
              {"summary", memory.summary},
              {"recur_name", memory.RecurName()},
              {"objective", nullptr},
              {"gates", gates},
              {"beside", beside},
              {"zero_state", memory.zeros != kernels::ZeroStart::kInvalid},
              {"learned_state", memory.learned_state},
              {"step_scales_values", memory.step_scales_values},
              {"conv_v", memory.conv_v},
              {"skip", memory.skip},
              {"chunk_form", memory.chunk_form},
              {"attention", memory.attention}};
  if (memory.objective.has_value()) out["objective"] = kernels::Name(*memory.objective);
  return out;
}

std::string DescribeAll() {
  json all = json::array();
  for (const kernels::Memory& memory : kernels::Memories()) all.push_back(Described(memory));
  return all.dump();
}

std::string Load(const std::string& path) {
  try {
    return kernels::LoadMemory(path).info.name;
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lattice, m) {
  m.def("memories() -> str", DescribeAll);
  m.def("load_memory(str path) -> str", Load);
}

}  // namespace lattice
