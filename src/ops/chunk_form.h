// Which chunk form of the Lattice recurrence is meant.
#ifndef LATTICE_OPS_CHUNK_FORM_H_
#define LATTICE_OPS_CHUNK_FORM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/problem.h"

namespace lattice {

struct ChunkForm {
  kernels::Objective objective = kernels::Objective::kDec;
  kernels::Normalize normalize = kernels::Normalize::kToken;
  bool linear1 = false;  // linear2 otherwise
  int64_t chunk = 64;
  int64_t sweeps = 1;               // more than one: refined, linear2 only
  std::optional<double> tolerance;  // sweep until a sweep changes no slot by more, `sweeps` times at most

  // From the words that an operator is called with. Throws c10::Error that names the option, what was
  // expected and what was got.
  ChunkForm(const std::string& objective_word, const std::string& normalize_word, const std::string& method,
            int64_t chunk_tokens, int64_t sweep_count, std::optional<double> sweep_tolerance);

  bool Refined() const { return sweeps > 1 || tolerance.has_value(); }
  const char* Method() const { return linear1 ? "linear1" : "linear2"; }
};

// dec, enc or sim; throws c10::Error for other words.
kernels::Objective ParseObjective(const std::string& word);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNK_FORM_H_
