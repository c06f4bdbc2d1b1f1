#include "train/precision.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/error.h"

namespace lattice::train {

bool CpuHasBf16() {
#if defined(__x86_64__)
  // The compiler's check of avx512f also verifies that the operating system saves the registers.
  if (!__builtin_cpu_supports("avx512f")) return false;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1) != 0) return true;  // amx_bf16
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 5 & 1) != 0;  // avx512_bf16
#else
  return false;
#endif
}

model::Precision ResolvePrecision(model::Precision wanted) {
  if (wanted == model::Precision::kAuto)
    return CpuHasBf16() ? model::Precision::kBf16 : model::Precision::kFp32;
  Check(wanted != model::Precision::kBf16 || CpuHasBf16(),
        "[train] this CPU has no bf16 matrix products (avx512_bf16 or amx_bf16); set train.precision=fp32");
  return wanted;
}

}  // namespace lattice::train
