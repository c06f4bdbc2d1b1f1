// The element-wise product of a SwiGLU, forward and backward: y = silu(a) b, silu(a) = a / (1 + exp(-a)).
// uint16_t holds the bits of bfloat16.
#ifndef LATTICE_KERNELS_DENSE_SWIGLU_H_
#define LATTICE_KERNELS_DENSE_SWIGLU_H_

#include <cstdint>

namespace lattice::kernels {

void SwiGluForward(const float* a, const float* b, int64_t n, float* y);
void SwiGluForward(const double* a, const double* b, int64_t n, double* y);
void SwiGluForward(const uint16_t* a, const uint16_t* b, int64_t n, uint16_t* y);

void SwiGluBackward(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db);
void SwiGluBackward(const double* a, const double* b, const double* dy, int64_t n, double* da, double* db);
void SwiGluBackward(const uint16_t* a, const uint16_t* b, const uint16_t* dy, int64_t n, uint16_t* da,
                    uint16_t* db);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_SWIGLU_H_
