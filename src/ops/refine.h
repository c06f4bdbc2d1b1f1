// One chunk, refined until it may be trusted (docs/exact-or-chunked.md).
#ifndef LATTICE_OPS_REFINE_H_
#define LATTICE_OPS_REFINE_H_

#include <utility>

#include "ops/chunk_terms.h"

namespace lattice {

// y [N,C,D] and the state [N,M,D] behind the chunk, after form.sweeps sweeps, or as many as form.tolerance
// asks for. Heads whose sweeps do not settle are taken again as two chunks of half the length, down to single
// tokens, where the form is the exact step. Looks at the data: not traceable by torch.compile.
std::pair<at::Tensor, at::Tensor> RefineChunk(const ChunkForm& form, const ChunkTokens& x,
                                              const at::Tensor& S);

}  // namespace lattice

#endif  // LATTICE_OPS_REFINE_H_
