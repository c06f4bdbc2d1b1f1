// Rotary positions: how fast each pair of features turns.
#ifndef LATTICE_MODEL_ROPE_H_
#define LATTICE_MODEL_ROPE_H_

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace lattice::model {

// Radians per position of the pairs (i, i + pairs) of a head: rope_theta^(-i / pairs), slowed down as rope_type
// says.
//   linear  all by rope_factor
//   llama3  pairs that turn fewer than rope_low times in rope_context tokens by rope_factor, those that turn more
//           than rope_high times not at all, and those between by a value between
std::vector<double> RopeRates(const ModelConfig& config, int64_t pairs);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_ROPE_H_
