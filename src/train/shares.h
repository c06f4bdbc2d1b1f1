// Which part of the parameters a rank updates, when several train together.
#ifndef LATTICE_TRAIN_SHARES_H_
#define LATTICE_TRAIN_SHARES_H_

#include <cstdint>
#include <vector>

#include "nn/language_model.h"

namespace lattice::train {

// Elements [begin, begin + count) of a parameter.
struct Piece {
  const nn::Parameter* parameter;
  int64_t begin;
  int64_t count;
};

// All parameters one after the other, each aligned to a cache line, cut into `ranks` ranges of one length. A
// rank's share so has as many bytes as any other's, whatever the sizes of the parameters are.
class Shares {
 public:
  Shares(const std::vector<nn::Parameter>& parameters, int ranks);

  // The place of a parameter's first element.
  int64_t offset(size_t parameter) const { return offsets_[parameter]; }
  // Elements of one share, padding included.
  int64_t length() const { return length_; }

  // The pieces of parameters in a rank's share, in order.
  std::vector<Piece> PiecesOf(int rank) const;

 private:
  const std::vector<nn::Parameter>& parameters_;
  std::vector<int64_t> offsets_;
  int64_t length_ = 0;
};

// Every parameter that is trained as a whole: the share of a process that trains alone.
std::vector<Piece> WholeParameters(const std::vector<nn::Parameter>& parameters);

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SHARES_H_
