// Statistics of the memory of one head, a matrix of M slots of width D.
#ifndef LATTICE_RUNTIME_MEMORY_VIEW_H_
#define LATTICE_RUNTIME_MEMORY_VIEW_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::runtime {

struct MemoryView {
  double effective_rank = 0;   // EffectiveNumber of the singular values
  double similarity = 0;       // mean |cosine| over pairs of different slots
  std::vector<float> cosines;  // [M, M]
  std::vector<float> lengths;  // [M]
};
MemoryView ViewMemory(std::span<const float> state, int64_t slots, int64_t width);

double SquaredLength(std::span<const float> x);

// The effective number of weights: exp of the entropy of `weights` normalised to sum 1. It is n for n equal
// weights and 0 when all are 0.
double EffectiveNumber(std::span<const double> weights);

// The singular values of a [rows, columns] matrix, in no particular order.
std::vector<double> SingularValues(std::span<const float> matrix, int64_t rows, int64_t columns);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MEMORY_VIEW_H_
