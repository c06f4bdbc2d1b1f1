// States carried over segments, as a file: micro.<j>.blocks.<i>.<tensor>.
#ifndef LATTICE_TRAIN_SAVED_STATES_H_
#define LATTICE_TRAIN_SAVED_STATES_H_

#include <filesystem>
#include <vector>

#include "nn/block.h"

namespace lattice::train {

void SaveStates(const std::filesystem::path& path, const std::vector<nn::States>& states);

// Throws Error when the file is damaged or has other names in it.
std::vector<nn::States> LoadStates(const std::filesystem::path& path);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SAVED_STATES_H_
