// What goes into the memory of one layer, row by row, and the steps it makes of it.
#ifndef LATTICE_RUNTIME_LAYER_STEPS_H_
#define LATTICE_RUNTIME_LAYER_STEPS_H_

#include "base/thread_pool.h"
#include "kernels/problem.h"
#include "runtime/memory_rule.h"
#include "runtime/step_figures.h"

namespace lattice::runtime {

struct LayerSteps {
  const MemoryRule* rule = nullptr;
  // [rows, H, M or D], and gates [rows, H] or, per slot, [rows, H, M]; gates that are not made are null.
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* gates[kernels::kMaxGates] = {};  // in the order of the memory's description
  float* y = nullptr;  // [rows, H, D]
  int64_t layer = 0;

  // The rows from `row` on, as many as the sequence says, at a memory of all heads that advances in place.
  // `sequence` must outlive the problem.
  kernels::ForwardProblem<float> ProblemOf(int64_t row, float* memory,
                                           const kernels::Sequence* sequence) const;

  // The same for `count` rows, one after the other, each step measured and told to the observer, head by
  // head. `token` is what the first row is called.
  void RunObserved(int64_t row, int64_t count, int64_t token, float* memory, ThreadPool& threads,
                   StepObserver& observer) const;

 private:
  // The value of the gate of that role, of one per slot the mean, 1 where there is none.
  float GateOf(kernels::GateRole role, size_t cell) const;
  MemoryStep StepOf(int64_t row, int64_t head, const float* before, const float* after) const;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_LAYER_STEPS_H_
