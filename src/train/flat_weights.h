// The parameters of a model in one piece of memory, so that ranks can exchange their shares without copies.
#ifndef LATTICE_TRAIN_FLAT_WEIGHTS_H_
#define LATTICE_TRAIN_FLAT_WEIGHTS_H_

#include <ATen/core/Tensor.h>

#include "dist/group.h"
#include "nn/language_model.h"
#include "train/shares.h"

namespace lattice::train {

class FlatWeights {
 public:
  // Moves the model's parameters; values stay. Model and group must outlive the object.
  FlatWeights(const nn::LanguageModel& model, dist::Group& group);

  const Shares& shares() const { return shares_; }

  // Every rank has updated its share: gives every rank all of them.
  void Gather();

 private:
  const nn::LanguageModel& model_;
  dist::Group& group_;
  Shares shares_;
  at::Tensor memory_;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_FLAT_WEIGHTS_H_
