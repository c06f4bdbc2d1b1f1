// The states of all blocks as two tensors, so that they can leave the process and gradients can come back for them.
#ifndef LATTICE_NN_FLAT_STATES_H_
#define LATTICE_NN_FLAT_STATES_H_

#include <ATen/core/Tensor.h>

#include "nn/block.h"
#include "nn/language_model.h"

namespace lattice::nn {

struct FlatStates {
  // Which tensors there are and how large each is, and the blocks' positions: int64 [n]. n depends on the model alone, so
  // whoever has the same model knows it beforehand.
  at::Tensor layout;
  at::Tensor values;  // all numbers in a row, in the graph of the states' tensors
};

// The n of a model's layout.
int64_t LayoutLength(const LanguageModel& model);

// The number of values that a layout describes. Throws Error when it is none of this model.
int64_t ValuesLength(const LanguageModel& model, const at::Tensor& layout);

// States that Forward has filled, none of them empty. One copy; gradients flow through it.
FlatStates Flatten(const LanguageModel& model, const States& states);

// The way back: attached states that are views of flat.values, in its graph.
States Unflatten(const LanguageModel& model, const FlatStates& flat);

}  // namespace lattice::nn

#endif  // LATTICE_NN_FLAT_STATES_H_
