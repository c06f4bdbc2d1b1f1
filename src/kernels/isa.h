// Which instruction set the kernels use.
//
// Chosen once, at the first use: the best the CPU has, capped by the environment variable LATTICE_ISA
// (scalar, sse4, avx2 or avx512 on x86-64; neon, neon-dot or neon-bf16 on 64-bit ARM; wasm in a browser).
#ifndef LATTICE_KERNELS_ISA_H_
#define LATTICE_KERNELS_ISA_H_

#include <string>
#include <vector>

namespace lattice::kernels {

// The names this CPU can run, slowest first, e.g. {"scalar", "sse4", "avx2", "avx512"}.
std::vector<std::string> AvailableIsas();

// The name in effect. Throws Error when LATTICE_ISA names something unknown or absent here.
std::string CurrentIsa();
// Whether that is avx512, without making a string.
bool UsesAvx512();

// Overrides the choice for the whole process. Not to be called while a kernel runs; meant for tests and
// benches.
void SetIsa(const std::string& name);

// Called by the kernels before they dispatch: applies LATTICE_ISA once. Thread-safe.
void InitIsa();

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_ISA_H_
