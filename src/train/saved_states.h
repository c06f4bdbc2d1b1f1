// States carried over segments, as a file: micro.<j>.blocks.<i>.<tensor>.
#ifndef LATTICE_TRAIN_SAVED_STATES_H_
#define LATTICE_TRAIN_SAVED_STATES_H_

#include <filesystem>
#include <vector>

#include "nn/block.h"
#include "train/tensor_file.h"

namespace lattice::train {

// The tensors themselves, not copies.
NamedTensors StateTensors(const std::vector<nn::States>& states);

// Throws Error when the file is damaged or has other names in it.
std::vector<nn::States> LoadStates(const std::filesystem::path& path);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SAVED_STATES_H_
