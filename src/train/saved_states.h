// The file of the recurrent states that are carried over segments. Tensors are named
// micro.<j>.blocks.<i>.<tensor>.
#ifndef LATTICE_TRAIN_SAVED_STATES_H_
#define LATTICE_TRAIN_SAVED_STATES_H_

#include <filesystem>
#include <vector>

#include "nn/block.h"
#include "train/tensor_file.h"

namespace lattice::train {

// The tensors themselves, not copies.
NamedTensors StateTensors(const std::vector<nn::States>& states);

// Throws Error when the file is damaged or holds tensors with other names.
std::vector<nn::States> LoadStates(const std::filesystem::path& path);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SAVED_STATES_H_
