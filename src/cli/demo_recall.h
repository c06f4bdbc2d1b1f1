// The first part of the demo: what a memory is. Pairs of a key and a value are written into a state of fixed
// size and read back. Needs no torch and no training.
#ifndef LATTICE_CLI_DEMO_RECALL_H_
#define LATTICE_CLI_DEMO_RECALL_H_

#include <cstdint>
#include <iosfwd>
#include <string>

namespace lattice::cli {

struct RecallTask {
  int64_t pairs = 16;
  int64_t writes = 1;  // how often each key gets a new value; the last one counts
  int64_t trials = 8;
  uint64_t seed = 0;
};

// Part of the keys whose reading is nearest to their own value among all values written, for a rule of the
// kernels' registry with 64 slots of width 64, random unit keys and values, and write gate 1/2.
double Recall(const std::string& rule, const RecallTask& task);

// A table of exact Lattice, DeltaNet and linear attention over numbers of pairs.
void ShowRecall(std::ostream& out);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_DEMO_RECALL_H_
