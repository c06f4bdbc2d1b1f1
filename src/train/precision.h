// Which matrix products a run uses.
#ifndef LATTICE_TRAIN_PRECISION_H_
#define LATTICE_TRAIN_PRECISION_H_

#include "model/config.h"

namespace lattice::train {

// The CPU multiplies bf16 matrices in hardware: avx512_bf16 or amx_bf16.
bool CpuHasBf16();

// kAuto becomes kBf16 where the CPU has it, else kFp32. Throws Error when bf16 is asked for and absent.
model::Precision ResolvePrecision(model::Precision wanted);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_PRECISION_H_
