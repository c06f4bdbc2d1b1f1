// Measures what the memory of every layer does with a text, for the section "What the memory does" of
// reports.
#ifndef LATTICE_TRAIN_MEMORY_FIGURES_H_
#define LATTICE_TRAIN_MEMORY_FIGURES_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "nn/language_model.h"

namespace lattice::train {

// One value per layer, by name:
//   write, novelty, answer, beta   means over tokens and heads of the figures of runtime/step_figures.h,
//                                  novelty weighted by what was written; Lattice only
//   slot_similarity                mean |cosine| of two different slots of a head, in the last state;
//                                  memories whose state is a matrix
//   effective_rank                 exp(entropy of the singular values) / min(M, D), in the last state; the
//                                  same memories
// An empty list means that the memory has no such figure. (write and answer are defined for every memory, but
// the probe does not record all inputs of other memories: mamba2's step size, mlstm's gates.)
using MemoryFigures = std::map<std::string, std::vector<double>>;

// Runs the model over `tokens` int64 [1,T] without gradients. No figures for the transformer.
MemoryFigures MeasureMemory(const nn::LanguageModel& model, const at::Tensor& tokens);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_MEMORY_FIGURES_H_
