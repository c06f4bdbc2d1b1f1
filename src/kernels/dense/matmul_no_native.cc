// The functions of matmul_native.h for architectures without such instructions: they are never called.
#include "kernels/dense/matmul_native.h"

#if !defined(__x86_64__) && !defined(__aarch64__)

namespace lattice::kernels {

bool HasNativeBf16() { return false; }
bool HasNativeInt8() { return false; }
bool HasNativeInt4() { return false; }
void RoundRowsNative(const float*, int64_t, const PackedRows&, int64_t, int64_t) {}
void MatMulBf16Native(const MatMul&, int64_t, int64_t) {}
void MatMulInt8Native(const MatMul&, int64_t, int64_t) {}
void MatMulInt4Native(const MatMul&, int64_t, int64_t) {}

}  // namespace lattice::kernels

#endif
