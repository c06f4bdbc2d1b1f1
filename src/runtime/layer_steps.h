// The recurrence of one layer: its inputs (q, k, v and gates of all rows of a pass) and ways to run it.
#ifndef LATTICE_RUNTIME_LAYER_STEPS_H_
#define LATTICE_RUNTIME_LAYER_STEPS_H_

#include "base/thread_pool.h"
#include "kernels/problem.h"
#include "runtime/memory_rule.h"
#include "runtime/step_figures.h"

namespace lattice::runtime {

struct LayerSteps {
  const MemoryRule* rule = nullptr;
  // q and k are [rows, H, M], v is [rows, H, D]. A gate is [rows, H] or, per slot, [rows, H, M]; null when
  // the block does not compute it.
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* gates[kernels::kMaxGates] = {};  // in the order of the memory's description
  float* y = nullptr;                           // [rows, H, D]
  int64_t layer = 0;

  // The kernels' description of one session's tokens: as many rows as `sequence` says, from `row` on.
  // `memory` is the state of all heads and advances in place. `sequence` must outlive the problem.
  kernels::ForwardProblem<float> ProblemOf(int64_t row, float* memory,
                                           const kernels::Sequence* sequence) const;

  // Runs `count` rows one after the other, measures each step and calls the observer with it, head by head.
  // `token` is the index of the first row in its feed.
  void RunObserved(int64_t row, int64_t count, int64_t token, float* memory, ThreadPool& threads,
                   StepObserver& observer) const;

 private:
  // The value of the gate with that role at one cell (row and head): the mean of a per-slot gate, 1 if there
  // is no such gate.
  float GateOf(kernels::GateRole role, size_t cell) const;
  MemoryStep StepOf(int64_t row, int64_t head, const float* before, const float* after) const;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_LAYER_STEPS_H_
