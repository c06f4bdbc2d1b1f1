// Runs a random problem through the reference and through the kernels of every instruction set, in float32 and float64,
// and says where they disagree.
#ifndef LATTICE_FUZZ_DIFFERENTIAL_COMPARE_H_
#define LATTICE_FUZZ_DIFFERENTIAL_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "random_problem.h"

namespace lattice::differential {

struct Comparison {
  std::vector<std::string> disagreements;  // "dk in float32 under avx2: error 0.01, allowed 0.0001"
  int64_t tensors = 0;                     // compared
  int64_t skipped = 0;  // not compared: the reference itself has no digits there, or no number
  double largest = 0;   // the largest error as a share of what is allowed
};

// With `spoil`, one element of a result is changed before the comparison, which must find it.
Comparison Compare(const RandomProblem& problem, bool spoil = false);

}  // namespace lattice::differential

#endif  // LATTICE_FUZZ_DIFFERENTIAL_COMPARE_H_
