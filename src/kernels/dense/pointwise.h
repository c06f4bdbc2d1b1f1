// The element-wise and row-wise operations between the matrix products of a model at inference. Everything is
// contiguous float32 unless it says otherwise.
#ifndef LATTICE_KERNELS_DENSE_POINTWISE_H_
#define LATTICE_KERNELS_DENSE_POINTWISE_H_

#include <cstdint>

namespace lattice::kernels {

// y += x; uint16_t holds the bits of bfloat16.
void AddTo(const float* x, int64_t n, float* y);
void AddTo(const uint16_t* x, int64_t n, float* y);
// x = x / (1 + exp(-x))
void SiluInPlace(float* x, int64_t n);
// y = gelu(gate) y with gelu(x) = x (1 + erf(x / sqrt 2)) / 2; erf to 1.5e-7.
void GeluTimes(const float* gate, int64_t n, float* y);
// x = sigmoid(x)^power, computed as exp(power log sigmoid(x)).
void SigmoidPower(float* x, int64_t n, float power);
// One row in place: (x - mean) / sqrt(variance + eps) * weight + bias.
void LayerNormRow(float* x, const float* weight, const float* bias, int64_t n, float eps);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_POINTWISE_H_
