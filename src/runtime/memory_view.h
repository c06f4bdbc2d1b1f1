// Figures about the memory of one head: a matrix of M slots, D wide each.
#ifndef LATTICE_RUNTIME_MEMORY_VIEW_H_
#define LATTICE_RUNTIME_MEMORY_VIEW_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::runtime {

struct MemoryView {
  double effective_rank = 0;   // exp of the entropy of the singular values' parts of their sum
  double similarity = 0;       // mean |cosine| of two different slots
  std::vector<float> cosines;  // [M, M]
  std::vector<float> lengths;  // [M]
};
MemoryView ViewMemory(std::span<const float> state, int64_t slots, int64_t width);

double SquaredLength(std::span<const float> x);

// exp of the entropy of `weights` as parts of their sum: how many of them count. 0 when all are 0.
double EffectiveNumber(std::span<const double> weights);

// Singular values of rows x columns numbers, in no order.
std::vector<double> SingularValues(std::span<const float> matrix, int64_t rows, int64_t columns);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_MEMORY_VIEW_H_
