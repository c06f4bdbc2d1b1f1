// The recurrence of one layer over the segments of a pass, by the kernels that training uses. Inside the
// runtime only.
#ifndef LATTICE_RUNTIME_RECURRENCE_H_
#define LATTICE_RUNTIME_RECURRENCE_H_

#include <span>

#include "base/stretches.h"
#include "base/thread_pool.h"
#include "kernels/problem.h"
#include "runtime/model_parts.h"
#include "runtime/pass.h"

namespace lattice::runtime {

struct Recurrence {
  const ModelParts* model = nullptr;
  // [rows, H, M or D] and [rows, H] (mu per slot: [rows, H, M]); gates a mixer has not are null.
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float *gamma = nullptr, *mu = nullptr, *igate = nullptr, *fgate = nullptr;
  float* y = nullptr;  // [rows, H, D]
  int64_t layer = 0;

  // Advances the segments' states in place.
  void Run(std::span<const Segment> segments, ThreadPool& threads, Stretches& stretches) const;

 private:
  // Tokens [first, first + count) of a segment whose memory is `state`; `sequence` must outlive the problem.
  kernels::ForwardProblem<float> ProblemOf(int64_t row, float* state,
                                           const kernels::Sequence* sequence) const;
  void RunTraced(const Segment& segment, ThreadPool& threads) const;
  MemoryStep StepOf(const Segment& segment, int64_t t, int64_t head, const HeadTrace& measured,
                    const float* before, const float* after) const;
  HeadTrace Measure(int64_t row, int64_t head, const float* before, const float* after) const;
  float* Memory(const Segment& segment) const;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_RECURRENCE_H_
