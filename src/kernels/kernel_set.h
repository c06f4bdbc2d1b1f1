// The kernels of a rule: its forward and backward pass over cells [first, last) of a problem, for two element
// types.
#ifndef LATTICE_KERNELS_KERNEL_SET_H_
#define LATTICE_KERNELS_KERNEL_SET_H_

#include "kernels/problem.h"

namespace lattice::kernels {

template <typename T>
using ForwardFn = void (*)(const ForwardProblem<T>&, int64_t first, int64_t last);
template <typename T>
using BackwardFn = void (*)(const BackwardProblem<T>&, int64_t first, int64_t last);

// Any thread may run any range; the results of a cell do not depend on the range it is in.
struct KernelSet {
  ForwardFn<float> forward_f32 = nullptr;
  ForwardFn<double> forward_f64 = nullptr;
  BackwardFn<float> backward_f32 = nullptr;
  BackwardFn<double> backward_f64 = nullptr;
  SavedSize saved_size;  // activations that `forward` saves per token

  template <typename T>
  ForwardFn<T> Forward() const {
    if constexpr (sizeof(T) == 4) {
      return forward_f32;
    } else {
      return forward_f64;
    }
  }
  template <typename T>
  BackwardFn<T> Backward() const {
    if constexpr (sizeof(T) == 4) {
      return backward_f32;
    } else {
      return backward_f64;
    }
  }
};

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_KERNEL_SET_H_
