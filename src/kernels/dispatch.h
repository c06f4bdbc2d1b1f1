// Run-time choice of the instruction set for a rule, by two macros for its .cc file, which Highway compiles
// once per instruction set:
//   LATTICE_INSTANTIATE_RULE(Name, Rule)   the functions NameForwardF32, NameForwardF64, NameBackwardF32 and
//                                          NameBackwardF64 of one instruction set
//   LATTICE_DISPATCH_RULE(Name)            the function KernelSet NameKernels(), whose kernels call those of
//                                          the instruction set in use
#ifndef LATTICE_KERNELS_DISPATCH_H_
#define LATTICE_KERNELS_DISPATCH_H_

#include "kernels/isa.h"
#include "kernels/kernel_set.h"

#ifdef __wasm__

#include "base/error.h"

// A model in a web page computes forward, in float32. The other kernels would be two thirds of its module.
#define LATTICE_INSTANTIATE_RULE(name, Rule)                                    \
  void name##ForwardF32(const ForwardProblem<float>& p, int64_t a, int64_t b) { \
    ForwardCells<Rule<float>>(p, a, b);                                         \
  }                                                                             \
  SavedSize name##SavedSize() { return kSavedSize<Rule<float>>; }

#define LATTICE_DISPATCH_RULE(name)                                                         \
  HWY_EXPORT(name##ForwardF32);                                                             \
  KernelSet name##Kernels() {                                                               \
    KernelSet set;                                                                          \
    set.forward_f32 = [](const ForwardProblem<float>& p, int64_t a, int64_t b) {            \
      HWY_DYNAMIC_DISPATCH(name##ForwardF32)(p, a, b);                                      \
    };                                                                                      \
    set.forward_f64 = [](const ForwardProblem<double>&, int64_t, int64_t) { LeftOut(); };   \
    set.backward_f32 = [](const BackwardProblem<float>&, int64_t, int64_t) { LeftOut(); };  \
    set.backward_f64 = [](const BackwardProblem<double>&, int64_t, int64_t) { LeftOut(); }; \
    set.saved_size = HWY_STATIC_DISPATCH(name##SavedSize)();                                \
    return set;                                                                             \
  }

namespace lattice::kernels {
[[noreturn]] inline void LeftOut() { Fail("[kernels] WebAssembly has the forward kernels in float32 only"); }
}  // namespace lattice::kernels

#else

// To be used inside HWY_NAMESPACE, after engine-inl.h. Rule is a class template over the element type.
#define LATTICE_INSTANTIATE_RULE(name, Rule)                                       \
  void name##ForwardF32(const ForwardProblem<float>& p, int64_t a, int64_t b) {    \
    ForwardCells<Rule<float>>(p, a, b);                                            \
  }                                                                                \
  void name##ForwardF64(const ForwardProblem<double>& p, int64_t a, int64_t b) {   \
    ForwardCells<Rule<double>>(p, a, b);                                           \
  }                                                                                \
  void name##BackwardF32(const BackwardProblem<float>& p, int64_t a, int64_t b) {  \
    BackwardCells<Rule<float>>(p, a, b);                                           \
  }                                                                                \
  void name##BackwardF64(const BackwardProblem<double>& p, int64_t a, int64_t b) { \
    BackwardCells<Rule<double>>(p, a, b);                                          \
  }                                                                                \
  SavedSize name##SavedSize() { return kSavedSize<Rule<float>>; }

// To be used under HWY_ONCE, in namespace lattice::kernels.
#define LATTICE_DISPATCH_RULE(name)                                                 \
  HWY_EXPORT(name##ForwardF32);                                                     \
  HWY_EXPORT(name##ForwardF64);                                                     \
  HWY_EXPORT(name##BackwardF32);                                                    \
  HWY_EXPORT(name##BackwardF64);                                                    \
  KernelSet name##Kernels() {                                                       \
    KernelSet set;                                                                  \
    set.forward_f32 = [](const ForwardProblem<float>& p, int64_t a, int64_t b) {    \
      InitIsa();                                                                    \
      HWY_DYNAMIC_DISPATCH(name##ForwardF32)(p, a, b);                              \
    };                                                                              \
    set.forward_f64 = [](const ForwardProblem<double>& p, int64_t a, int64_t b) {   \
      InitIsa();                                                                    \
      HWY_DYNAMIC_DISPATCH(name##ForwardF64)(p, a, b);                              \
    };                                                                              \
    set.backward_f32 = [](const BackwardProblem<float>& p, int64_t a, int64_t b) {  \
      InitIsa();                                                                    \
      HWY_DYNAMIC_DISPATCH(name##BackwardF32)(p, a, b);                             \
    };                                                                              \
    set.backward_f64 = [](const BackwardProblem<double>& p, int64_t a, int64_t b) { \
      InitIsa();                                                                    \
      HWY_DYNAMIC_DISPATCH(name##BackwardF64)(p, a, b);                             \
    };                                                                              \
    set.saved_size = HWY_STATIC_DISPATCH(name##SavedSize)();                        \
    return set;                                                                     \
  }

#endif  // __wasm__

#endif  // LATTICE_KERNELS_DISPATCH_H_
