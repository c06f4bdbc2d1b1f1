// Round values for the axes of charts: 1, 2 or 5 times a power of ten.
#ifndef LATTICE_BASE_TICKS_H_
#define LATTICE_BASE_TICKS_H_

#include <cstddef>
#include <vector>

namespace lattice {

// The smallest of 1, 2, 5 or 10 times a power of ten that is at least `rough`, a positive number.
double RoundStep(double rough);

// The multiples of a round step within [low, high], with a step that divides it into about `parts` parts.
// low < high.
std::vector<double> LinearTicks(double low, double high, int parts);

// For a logarithmic axis: 1, 2 and 5 times powers of ten within [low, high]. Where those are more than
// `most`, only powers of ten; where they are fewer than three, LinearTicks(). 0 < low < high.
std::vector<double> LogTicks(double low, double high, size_t most);

}  // namespace lattice

#endif  // LATTICE_BASE_TICKS_H_
