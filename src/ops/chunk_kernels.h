// linear1 and linear2 by the CPU kernels of kernels/chunk; the counterpart of ops/chunk_matrix.h.
#ifndef LATTICE_OPS_CHUNK_KERNELS_H_
#define LATTICE_OPS_CHUNK_KERNELS_H_

#include <tuple>
#include <vector>

#include "ops/chunk_form.h"
#include "ops/inputs.h"

namespace lattice {

// As ChunkMatrixForward and ChunkMatrixBackward, for CPU tensors and a form that is not refined. The
// checkpoints are the states before the segments of kernels/chunk/plan.h.
std::tuple<at::Tensor, at::Tensor, at::Tensor> ChunkKernelsForward(const ChunkForm& form, const Inputs& in,
                                                                   bool keep);
std::vector<at::Tensor> ChunkKernelsBackward(const ChunkForm& form, const Inputs& in,
                                             const at::Tensor& checkpoints, const at::Tensor& dy,
                                             const OptionalTensor& dstate_out);

// The most checkpoints of B sequences of T tokens, or of packed ones of T tokens together.
c10::SymInt ChunkKernelsCheckpoints(const ChunkForm& form, c10::SymInt B, c10::SymInt T, bool packed);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNK_KERNELS_H_
