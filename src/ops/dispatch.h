// Operators that call each other through torch's dispatcher, so that autograd, fake tensors and torch.compile see
// every call, from C++ as from Python.
//
// A layer `x` is three operators: x itself, which checks its arguments and is made of others; _x, which has kernels for
// the CPU, for shapes alone (Meta) and for autograd; and _x_backward, which the latter calls. On devices without kernels
// x is made of ATen's operators instead (composite.h).
#ifndef LATTICE_OPS_DISPATCH_H_
#define LATTICE_OPS_DISPATCH_H_

#include <ATen/ops/empty.h>

#include <initializer_list>

#include "ops/inputs.h"
#include "ops/operator.h"

namespace lattice {

// Throws c10::Error unless all of these are on one device.
inline void RequireOneDevice(const char* op, std::initializer_list<OptionalTensor> tensors) {
  const at::Device device = (*tensors.begin())->device();
  for (const OptionalTensor& x : tensors) {
    TORCH_CHECK_VALUE(!x.has_value() || !x->defined() || x->device() == device, op, " got a tensor on ",
                      x->device(), " beside one on ", device, "; move them to one device");
  }
}

// The tensor or an undefined one, contiguous.
inline at::Tensor Contiguous(const OptionalTensor& x) {
  return x.has_value() ? x->contiguous() : at::Tensor();
}

// Operators have no absent results: this stands for one.
inline at::Tensor Nothing(const at::Tensor& like) { return at::empty({0}, like.options()); }

// A new tensor of the shape of x, contiguous.
inline at::Tensor NewLike(const at::Tensor& x, at::ScalarType type) {
  return at::empty_symint(x.sym_sizes(), x.options().dtype(type));
}
inline at::Tensor NewLike(const at::Tensor& x) { return NewLike(x, x.scalar_type()); }

// The size of a dimension that is a number in every trace, such as a width. x.size(i) would make all of them
// numbers, the length of the text as well.
inline int64_t FixedSize(const at::Tensor& x, int64_t dimension) {
  return x.sym_size(dimension).guard_int(__FILE__, __LINE__);
}

}  // namespace lattice

#endif  // LATTICE_OPS_DISPATCH_H_
