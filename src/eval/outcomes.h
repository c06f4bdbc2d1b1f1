// Turns log-likelihoods into the metrics that are reported.
#ifndef LATTICE_EVAL_OUTCOMES_H_
#define LATTICE_EVAL_OUTCOMES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "eval/item.h"
#include "eval/likelihood.h"

namespace lattice::eval {

// One item, each value 0 or 1. Ties go to the first choice. An empty choice never wins by acc_norm or
// acc_bytes, as in the harness, which divides by its length 0.
struct Outcome {
  bool acc = false;        // the gold continuation is the most likely
  bool acc_norm = false;   // the same after dividing by the choices' lengths in code points
  bool acc_bytes = false;  // the same after dividing by their lengths in bytes of UTF-8
};
Outcome OutcomeOf(const Item& item, std::span<const Likelihood> scores);

struct Mean {
  double value = 0;
  double stderr_ = 0;  // sample deviation (n - 1) / sqrt(n); 0 for fewer than two values
};
Mean MeanOf(std::span<const double> values);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_OUTCOMES_H_
