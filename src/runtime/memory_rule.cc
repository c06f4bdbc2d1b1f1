#include "runtime/memory_rule.h"

namespace lattice::runtime {

MemoryRule::MemoryRule(const model::ModelConfig& config)
    : memory(&kernels::FindMemory(config.mixer)),
      normalize(config.normalize),
      shrink(memory->Shrinks() ? static_cast<float>(config.lam) : 0),
      heads(config.heads),
      slots(config.Slots()),
      width(config.HeadDim()),
      state_size(memory->StateSize(slots, width)) {}

}  // namespace lattice::runtime
