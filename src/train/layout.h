// How the ranks divide a step: which sequences each computes, and with how many others it shares them.
#ifndef LATTICE_TRAIN_LAYOUT_H_
#define LATTICE_TRAIN_LAYOUT_H_

#include <cstdint>
#include <string>

#include "model/config.h"

namespace lattice::dist {
class Group;
}

namespace lattice::train {

// Of n ranks, each train.sequence_ranks in a row share their sequences and lie in one after the other the pieces of equal
// length; such groups of ranks divide the sequences of a step evenly. A process alone has them all.
struct Layout {
  int64_t rows = 1;  // sequences of a step
  // Sequences of this rank's group: own_rows from first_row on.
  int64_t own_rows = 1, first_row = 0;
  int64_t sequence_ranks = 1;  // ranks that share a sequence
  int64_t data_ranks = 1;      // groups of them
  int64_t place = 0;           // this rank's among those of its group
  int first_rank = 0;          // the first rank of its group
  int64_t piece = 0;           // tokens of a sequence that a rank has at a time: all, or its part

  // Throws Error when the configuration cannot be divided so, and says what to set.
  Layout(const model::Config& config, const dist::Group* group);

  // What of a step this rank has: "4 sequences", or "a piece of 256 tokens of each of 4 sequences".
  std::string Text() const;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_LAYOUT_H_
