// The precision of a run's matrix products.
#ifndef LATTICE_TRAIN_PRECISION_H_
#define LATTICE_TRAIN_PRECISION_H_

#include "model/config.h"

namespace lattice::train {

// Whether the CPU multiplies bf16 matrices in hardware: avx512_bf16 or amx_bf16.
bool CpuHasBf16();

// Resolves kAuto to kBf16 where the CPU supports it, else kFp32. Throws Error when kBf16 is not supported.
model::Precision ResolvePrecision(model::Precision wanted);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_PRECISION_H_
