// trainer.json of a checkpoint: TrainerState and the checksums of the other files.
#ifndef LATTICE_TRAIN_TRAINER_STATE_H_
#define LATTICE_TRAIN_TRAINER_STATE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "train/checkpoint.h"

namespace lattice::train {

// io::Checksum of each file by name.
using Checksums = std::map<std::string, uint64_t>;

void WriteTrainerState(const std::filesystem::path& directory, const TrainerState& state,
                       const Checksums& checksums);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_TRAINER_STATE_H_
