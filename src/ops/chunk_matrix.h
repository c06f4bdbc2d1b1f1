// The chunk forms of the Lattice recurrence over whole sequences, as products of matrices: linear1, linear2
// and the refined chunk. ATen operators alone, so it runs on every device torch has.
#ifndef LATTICE_OPS_CHUNK_MATRIX_H_
#define LATTICE_OPS_CHUNK_MATRIX_H_

#include <tuple>
#include <vector>

#include "ops/chunk_form.h"
#include "ops/inputs.h"

namespace lattice {

// y, the final state, and, if `keep`, the states at the starts of all chunks but each sequence's first,
// [checkpoints,H,M,D]. Inputs of one type (ops/inputs.h); no lam. With autograd on, differentiable through
// autograd, which then saves every intermediate.
std::tuple<at::Tensor, at::Tensor, at::Tensor> ChunkMatrixForward(const ChunkForm& form, const Inputs& in,
                                                                  bool keep);

// Gradients of q, k, v, gamma, mu (undefined without mu) and state. Recomputes chunk by chunk from the
// checkpoints: memory of one chunk. A null dstate_out is zero.
std::vector<at::Tensor> ChunkMatrixBackward(const ChunkForm& form, const Inputs& in,
                                            const at::Tensor& checkpoints, const at::Tensor& dy,
                                            const OptionalTensor& dstate_out);

// The most checkpoints that there can be. B sequences of T tokens, or packed ones of T tokens together.
c10::SymInt ChunkMatrixCheckpoints(const ChunkForm& form, c10::SymInt B, c10::SymInt T, bool packed);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNK_MATRIX_H_
