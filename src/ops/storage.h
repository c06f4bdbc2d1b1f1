// Data of tensors as the kernels take it: float, double, and the bits of bfloat16 as uint16_t.
#ifndef LATTICE_OPS_STORAGE_H_
#define LATTICE_OPS_STORAGE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lattice {

template <typename S>
const S* DataOf(const at::Tensor& x) {
  if constexpr (std::is_same_v<S, uint16_t>) {
    return reinterpret_cast<const uint16_t*>(x.const_data_ptr<at::BFloat16>());
  } else {
    return x.const_data_ptr<S>();
  }
}

template <typename S>
S* MutableDataOf(const at::Tensor& x) {
  if constexpr (std::is_same_v<S, uint16_t>) {
    return reinterpret_cast<uint16_t*>(x.mutable_data_ptr<at::BFloat16>());
  } else {
    return x.mutable_data_ptr<S>();
  }
}

// Calls run(S()) with the stored type of `type`: float, double or (bfloat16) uint16_t.
template <class Run>
void WithStorage(at::ScalarType type, const Run& run) {
  switch (type) {
    case at::kFloat:
      return run(float{});
    case at::kDouble:
      return run(double{});
    case at::kBFloat16:
      return run(uint16_t{});
    default:
      TORCH_CHECK_TYPE(false, "[ops] tensors must be float32, float64 or bfloat16, got ", type);
  }
}

// The same where only float32 and bfloat16 are wanted.
template <class Run>
void WithFloatStorage(at::ScalarType type, const Run& run) {
  if (type == at::kFloat) return run(float{});
  TORCH_CHECK_TYPE(type == at::kBFloat16, "[ops] tensors must be float32 or bfloat16, got ", type);
  run(uint16_t{});
}

}  // namespace lattice

#endif  // LATTICE_OPS_STORAGE_H_
