// A random problem for the kernels as a function of a seed: memory, shape, strides, lengths of packed sequences, and values
// that are ordinary or hostile.
#ifndef LATTICE_FUZZ_DIFFERENTIAL_RANDOM_PROBLEM_H_
#define LATTICE_FUZZ_DIFFERENTIAL_RANDOM_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/contract/test_case.h"

namespace lattice::differential {

// What is done to the ordinary values of a case.
struct Hostility {
  double gates_at_ends = 0;  // share of gates set to 0 or 1, of unbounded ones to -20 or 20
  double zero_keys = 0;      // share of tokens whose key is zero
  double zero_values = 0;
  bool repeated = false;  // every token of a sequence is the first one
  // Powers of ten that k, v, q and the state are multiplied by.
  std::vector<int> exponents = {0, 0, 0, 0};
  // Magnitudes up to 10^30: float32 overflows, and only float64 is compared.
  bool extreme = false;
};

struct RandomProblem {
  uint64_t seed = 0;
  kernels::Variant variant;
  kernels::Shape shape;
  Hostility hostility;
};

RandomProblem DrawProblem(uint64_t seed);

std::string Text(const RandomProblem& problem);

// The case of a problem. With `shift` above 0, every input is moved by a random relative amount of up to `shift`: how far
// results follow is how well the problem is conditioned.
template <typename T>
kernels::Case<T> MakeProblem(const RandomProblem& problem, double shift = 0);

}  // namespace lattice::differential

#endif  // LATTICE_FUZZ_DIFFERENTIAL_RANDOM_PROBLEM_H_
