// Steps for the ticks of an axis.
#ifndef LATTICE_BASE_ROUND_STEP_H_
#define LATTICE_BASE_ROUND_STEP_H_

#include <cmath>

namespace lattice {

// The smallest of 1, 2, 5 or 10 times a power of ten that is at least `rough`, a positive number.
inline double RoundStep(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

}  // namespace lattice

#endif  // LATTICE_BASE_ROUND_STEP_H_
