// Run-time choice of the instruction set for a rule. A rule's .cc file defines, per instruction set,
//   void Forward(const ForwardProblem<T>&, int64_t first, int64_t last)   and   Backward likewise, for float
//   and double
// as overloads named <Name>Forward and <Name>Backward, and closes with LATTICE_DISPATCH_RULE(<Name>), which
// makes the KernelSet <Name>Kernels().
#ifndef LATTICE_KERNELS_DISPATCH_H_
#define LATTICE_KERNELS_DISPATCH_H_

#include "kernels/isa.h"
#include "kernels/kernel_set.h"

// Inside HWY_NAMESPACE: the functions for a function template call such as ForwardCells<Rule<T>>(p,
// first, last).
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
  NoteSize name##Notes() { return kNotes<Rule<float>>; }

// Under HWY_ONCE, in namespace lattice::kernels.
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
    set.notes = HWY_STATIC_DISPATCH(name##Notes)();                                 \
    return set;                                                                     \
  }

#endif  // LATTICE_KERNELS_DISPATCH_H_
