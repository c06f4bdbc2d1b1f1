// The chunk approximations of the Lattice recurrence on the CPU (docs/exact-or-chunked.md): linear1 and
// linear2, forward and backward, for the three objectives.
//
// Any thread may run any range of cells; a cell's results do not depend on the range.
// ForwardProblem::checkpoints has one state before every segment of the plan but the first, and
// Sequence::checkpoint counts these. There are no saved activations.
#ifndef LATTICE_KERNELS_CHUNK_CHUNK_H_
#define LATTICE_KERNELS_CHUNK_CHUNK_H_

#include "kernels/chunk/plan.h"
#include "kernels/problem.h"

namespace lattice::kernels {

struct ChunkRule {
  Objective objective = Objective::kDec;
  Normalize normalize = Normalize::kToken;
  bool linear1 = false;  // linear2 otherwise
  ChunkPlan plan{64};
};

// Compute cells [first, last). Problem::normalize is ignored: the rule has its own.
void ChunkForward(const ChunkRule& rule, const ForwardProblem<float>& p, int64_t first, int64_t last);
void ChunkForward(const ChunkRule& rule, const ForwardProblem<double>& p, int64_t first, int64_t last);
void ChunkBackward(const ChunkRule& rule, const BackwardProblem<float>& p, int64_t first, int64_t last);
void ChunkBackward(const ChunkRule& rule, const BackwardProblem<double>& p, int64_t first, int64_t last);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_CHUNK_CHUNK_H_
