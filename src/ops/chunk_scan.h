// lattice.scan in chunks: linear1, linear2 and the refined chunk, differentiable (docs/exact-or-chunked.md).
//
// On the CPU linear1 and linear2 run in kernels of their own (kernels/chunk); the refined chunk, and every
// form on other devices, runs as products of matrices (ops/chunk_matrix.h).
#ifndef LATTICE_OPS_CHUNK_SCAN_H_
#define LATTICE_OPS_CHUNK_SCAN_H_

#include <tuple>

#include "ops/chunk_form.h"
#include "ops/inputs.h"

namespace lattice {

// Checks form and inputs, widens bfloat16 to the state's type, runs, and narrows y again. y and final state.
std::tuple<at::Tensor, at::Tensor> ChunkScan(const ChunkForm& form, const Inputs& in);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNK_SCAN_H_
