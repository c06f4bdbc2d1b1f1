// The file of the recurrent states that are carried over segments. Tensors are named
// micro.<j>.blocks.<i>.<tensor>.
#ifndef LATTICE_TRAIN_SAVED_STATES_H_
#define LATTICE_TRAIN_SAVED_STATES_H_

#include <filesystem>
#include <vector>

#include "nn/block.h"
#include "train/tensor_file.h"

namespace lattice::train {

// The tensors themselves, not copies. `first` is the number of the first micro-batch: ranks that train together
// number those of a step through.
NamedTensors StateTensors(const std::vector<nn::States>& states, int64_t first = 0);

// The states of all micro-batches in the files, by their numbers. Throws Error when a file is damaged or holds
// tensors with other names.
std::vector<nn::States> LoadStates(const std::vector<std::filesystem::path>& files);

// Rows [first, first + count) of all states' rows, in micro-batches of `micro`; `rows` must be their number.
std::vector<nn::States> SplitStates(const std::vector<nn::States>& states, int64_t rows, int64_t first,
                                    int64_t count, int64_t micro);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SAVED_STATES_H_
