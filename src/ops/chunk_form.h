// Which chunk form of the Lattice recurrence is meant.
#ifndef LATTICE_OPS_CHUNK_FORM_H_
#define LATTICE_OPS_CHUNK_FORM_H_

#include <cstdint>
#include <optional>
#include <string>

namespace lattice {

struct ChunkForm {
  std::string objective;  // dec, enc or sim
  std::string normalize;  // token, chunk or none
  std::string method;     // linear1 or linear2
  int64_t chunk = 64;
  int64_t sweeps = 1;               // more than one: refined, linear2 only
  std::optional<double> tolerance;  // sweep until a sweep changes no slot by more, `sweeps` times at most

  bool Refined() const { return sweeps > 1 || tolerance.has_value(); }
};

// Throws c10::Error that names the option, what was expected and what was got.
void CheckChunkForm(const ChunkForm& form);

}  // namespace lattice

#endif  // LATTICE_OPS_CHUNK_FORM_H_
