// What all ranks of a training must have alike.
#ifndef LATTICE_TRAIN_FACTS_H_
#define LATTICE_TRAIN_FACTS_H_

#include "dist/group.h"
#include "model/config.h"
#include "train/checkpoint.h"

namespace lattice::train {

// The program, torch, the instruction set, and every key of the configuration but paths, which may differ
// between hosts.
dist::Facts ProgramFacts(const model::Config& config);

// What the program has made of it: the data's fingerprint, and the precision that the CPU allows.
dist::Facts ResolvedFacts(const TrainerState& state);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_FACTS_H_
