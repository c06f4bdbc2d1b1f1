// The recurrence of a model's memory without its weights: the kernels, their options and the sizes.
#ifndef LATTICE_RUNTIME_MEMORY_RULE_H_
#define LATTICE_RUNTIME_MEMORY_RULE_H_

#include <cstdint>

#include "kernels/registry.h"
#include "model/config.h"

namespace lattice::runtime {

struct MemoryRule {
  // Always the exact recurrence, even where the config asks for a chunked form.
  explicit MemoryRule(const model::ModelConfig& config);

  const kernels::Memory* memory;
  kernels::Normalize normalize;
  float shrink;                 // model.lam, the value of a shrink gate; 0: none
  int64_t heads, slots, width;  // H, M, D
  int64_t state_size;           // floats in one head's state; the first M * D are S

  kernels::ForwardFn<float> forward() const {
    return (shrink > 0 ? memory->shrink_kernels : memory->kernels).forward_f32;
  }
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MEMORY_RULE_H_
