// Cross-entropy of rows of logits and its gradient, in place.
#ifndef LATTICE_KERNELS_DENSE_SOFTMAX_LOSS_H_
#define LATTICE_KERNELS_DENSE_SOFTMAX_LOSS_H_

#include <cstdint>

namespace lattice::kernels {

// For each row of logits [rows, classes]: losses[row] = -log softmax(row)[target], and the row becomes
// scale (softmax(row) - one-hot(target)). A negative target: loss 0 and a row of zeros. Computed in
// float32, also where logits hold the bits of bfloat16; a row of 32,000 stays in L2 between the passes over
// it.
void SoftmaxLoss(float* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
                 float* losses);
void SoftmaxLoss(uint16_t* logits, const int64_t* targets, int64_t rows, int64_t classes, float scale,
                 float* losses);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_DENSE_SOFTMAX_LOSS_H_
