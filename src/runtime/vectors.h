// Small operations on vectors that blocks share. Internal to the runtime.
#ifndef LATTICE_RUNTIME_VECTORS_H_
#define LATTICE_RUNTIME_VECTORS_H_

#include <cstdint>

#include "base/functions.h"
#include "model/config.h"

namespace lattice::runtime {

// Normalises `count` adjacent vectors of `width`: to length 1 (kL2), by 1 / sqrt(width) (kScale), or to length
// sqrt(width) (kRms).
void NormalizeVectors(model::VectorNorm kind, int64_t count, int64_t width, float* x);

// x [rows, width] += bias [width]
void AddBias(const float* bias, int64_t rows, int64_t width, float* x);

inline float Sigmoid(float x) { return static_cast<float>(1 / (1 + Exp(-x))); }

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_VECTORS_H_
