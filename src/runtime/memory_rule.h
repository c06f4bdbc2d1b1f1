// How the memory of a model steps, without its weights: the kernels' rule and what it is asked to do.
#ifndef LATTICE_RUNTIME_MEMORY_RULE_H_
#define LATTICE_RUNTIME_MEMORY_RULE_H_

#include <cstdint>

#include "kernels/registry.h"
#include "model/config.h"
#include "model/mixers.h"

namespace lattice::runtime {

struct MemoryRule {
  // The exact recurrence, also where the configuration asks for a chunked form of it.
  explicit MemoryRule(const model::ModelConfig& config);

  const model::MixerInfo* mixer;
  const kernels::RuleInfo* rule;  // null for attention, which has no such memory
  kernels::Normalize normalize;
  float lam;                    // l1 shrinkage of the lattice mixers; 0: none
  int64_t heads, slots, width;  // H, M, D
  int64_t state_size = 0;       // numbers of one head's state; the first M * D are S

  bool slot_mu() const { return mixer->forget_gate == model::ForgetGate::kSlots; }
  kernels::ForwardFn<float> forward() const {
    return lam > 0 ? rule->shrink_kernels.forward_f32 : rule->kernels.forward_f32;
  }
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MEMORY_RULE_H_
