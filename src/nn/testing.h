// For tests of layers.
#ifndef LATTICE_NN_TESTING_H_
#define LATTICE_NN_TESTING_H_

#include <ATen/ATen.h>

namespace lattice::nn {

// Numbers without pattern, about of size 1.
inline at::Tensor Draw(at::IntArrayRef shape, double seed) {
  const int64_t n = c10::multiply_integers(shape);
  return ((at::arange(n, at::kDouble) * 0.7391 + seed).sin() * 91.7).sin().view(shape);
}

}  // namespace lattice::nn

#endif  // LATTICE_NN_TESTING_H_
