// What the memory of every layer does with a text: the figures behind "What the memory does" in reports.
#ifndef LATTICE_TRAIN_MEMORY_FIGURES_H_
#define LATTICE_TRAIN_MEMORY_FIGURES_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "nn/language_model.h"

namespace lattice::train {

// Means over tokens, heads and slots, one value per layer, by name (docs/recurrence.md has the letters):
//   write_intensity   |gamma Delta_i| / s_i: how much of a slot's length one token writes     lattice mixers
//   novelty           |h - a_i Phi_i| / |h|: the part of h that slot i does not hold yet      lattice mixers
//   beta              beta_i of the token normalisation                                        lattice mixers
//   slot_similarity   |cosine| of two different slots of a head, in the last state             matrix states
//   effective_rank    exp(entropy of the singular values) / min(M, D), in the last state       matrix states
using MemoryFigures = std::map<std::string, std::vector<double>>;

// Runs the model over `tokens` int64 [1,T] without gradients. Empty for the transformer.
MemoryFigures MeasureMemory(const nn::LanguageModel& model, const at::Tensor& tokens);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_MEMORY_FIGURES_H_
