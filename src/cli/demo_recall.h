// The first part of the demo shows what a memory is: pairs of a key and a value are written into a state of
// fixed size and read back. Needs no torch and no training.
//
// All experiments use one head of 64 slots of width 64, and random unit keys and values. Lattice starts with
// all slots equal (model.state_init=aligned), the other memories from zeros. The mean is subtracted from what
// is read, as by the LayerNorm after every memory of a model; this removes the direction that the slots
// started from.
#ifndef LATTICE_CLI_DEMO_RECALL_H_
#define LATTICE_CLI_DEMO_RECALL_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace lattice::cli {

struct RecallTask {
  int64_t pairs = 16;
  int64_t writes = 1;  // how often each key gets a new value; the last one counts
  double gate = 1;     // value of the write gate, if the memory has one
  int64_t trials = 8;
  uint64_t seed = 0;
};

// The fraction of keys for which the value that is read is nearest to their own last value, among all values
// written.
double Recall(const std::string& mixer, const RecallTask& task);

// What is written after some pairs.
enum class Offer { kLastPair, kEarlierPair, kNewValue, kNewPair };

struct Change {
  double write = 0;               // runtime/step_figures.h, mean over trials
  std::optional<double> novelty;  // the same
};

// What writing the offer does to a memory that holds `pairs` pairs, with the gate fully open.
Change ChangeBy(const std::string& mixer, Offer offer, int64_t pairs = 32, int64_t trials = 8,
                uint64_t seed = 0);

// Prints two tables for Lattice, DeltaNet and linear attention: what they recall, and what changes them.
void ShowMemory(std::ostream& out);

}  // namespace lattice::cli

#endif  // LATTICE_CLI_DEMO_RECALL_H_
